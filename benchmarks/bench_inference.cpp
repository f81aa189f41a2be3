// bench_inference DIMS BACKEND PRECISION PASSES: a DynUNet on one batch of windows, on one thread.
// PRECISION: 32, bf16, int8 or int8-bf16. CPU seconds of a pass (median) and of making the engine,
// in one JSON line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include "config/registry.h"
#include "inference/engine.h"
#include "nn/model.h"

namespace {

using namespace cytra;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: bench_inference DIMS BACKEND PRECISION PASSES\n", stderr);
    return 2;
  }
  const bool is_3d = std::string(arguments[1]) == "3";
  const std::string precision = arguments[3];
  at::set_num_threads(1);
  at::manual_seed(0);
  const auto model = make<nn::Model>(
      is_3d ? "{_target_: DynUNet, spatial_dims: 3, filters: [32, 64, 128], strides: [1, 2, 2], "
              "kernel_size: [3, 3, 3], upsample_kernel_size: [2, 2]}"
            : "{_target_: DynUNet, filters: [32, 64, 128, 256], strides: [1, 2, 2, 2], "
              "kernel_size: [3, 3, 3, 3], upsample_kernel_size: [2, 2, 2]}");
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, c10::kCPU);
  const at::Tensor windows = is_3d ? at::randn({1, 1, 48, 96, 96}) : at::randn({4, 1, 256, 256});

  inference::EngineOptions options;
  options.backend = arguments[2];
  const bool is_int8 = precision.substr(0, 4) == "int8";
  options.precision = !is_int8 ? precision : precision == "int8" ? "32" : precision.substr(5);
  options.quantization = is_int8 ? "int8" : "none";
  const double begin = cpu_seconds();
  const auto engine = inference::make_engine(
      {[&](const at::Tensor& x) { return std::vector<at::Tensor>{(*model)(x)}; }},
      options,
      windows);
  const double made = cpu_seconds() - begin;
  std::vector<double> seconds;
  for (int pass = -1; pass < std::atoi(arguments[4]); ++pass) {
    const double start = cpu_seconds();
    engine->run(windows);
    if (pass >= 0) seconds.push_back(cpu_seconds() - start);  // the first one warms up
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  std::printf("{\"engine\": \"%s\", \"pass\": %.5f, \"make\": %.3f}\n",
              engine->text().c_str(),
              seconds[seconds.size() / 2],
              made);
}
