// bench_inference NETWORK BACKEND PRECISION PASSES: a network on one batch of windows, on one
// thread. NETWORK: 2 or 3 (a DynUNet of so many dimensions), vit, unetr, batchnorm or folded (a
// UNet with batch norms, as it is or folded into its convolutions). PRECISION: 32, bf16, int8,
// int8_dynamic, or the last two with -bf16. CPU seconds of a pass (median) and of making the
// engine, in one JSON line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include "config/registry.h"
#include "inference/engines/engine.h"
#include "nn/fold.h"
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

struct Work {
  const char* model;
  std::vector<int64_t> windows;
};
constexpr const char* kBatchNorms =
    "{_target_: UNet, channels: [32, 64, 128, 256], strides: [2, 2, 2], num_res_units: 2, norm: "
    "batch}";
const std::map<std::string, Work> kNetworks{
    {"2",
     {"{_target_: DynUNet, filters: [32, 64, 128, 256], strides: [1, 2, 2, 2], kernel_size: [3, 3, "
      "3, 3], upsample_kernel_size: [2, 2, 2]}",
      {4, 1, 256, 256}}},
    {"3",
     {"{_target_: DynUNet, spatial_dims: 3, filters: [32, 64, 128], strides: [1, 2, 2], "
      "kernel_size: [3, 3, 3], upsample_kernel_size: [2, 2]}",
      {1, 1, 48, 96, 96}}},
    {"vit",
     {"{_target_: ViT, spatial_dims: 2, img_size: [224, 224], patch_size: 16}", {1, 1, 224, 224}}},
    {"unetr",
     {"{_target_: UNETR, spatial_dims: 3, img_size: [96, 96, 96], out_channels: 2}",
      {1, 1, 96, 96, 96}}},
    {"batchnorm", {kBatchNorms, {4, 1, 256, 256}}},
    {"folded", {kBatchNorms, {4, 1, 256, 256}}},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 || kNetworks.count(arguments[1]) == 0) {
    std::fputs("usage: bench_inference NETWORK BACKEND PRECISION PASSES\n", stderr);
    return 2;
  }
  const std::string network = arguments[1], precision = arguments[3];
  const Work& work = kNetworks.at(network);
  at::set_num_threads(1);
  at::manual_seed(0);
  const auto model = make<nn::Model>(std::string(work.model));
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, c10::kCPU);
  if (network == "folded") nn::fold(*model);
  const at::Tensor windows = at::randn(work.windows);

  inference::EngineOptions options;
  options.backend = arguments[2];
  options.precision = precision;
  if (precision.substr(0, 4) == "int8") {
    const std::size_t end = precision.find('-');
    options.quantization = precision.substr(0, end);
    options.precision = end == std::string::npos ? "32" : precision.substr(end + 1);
  }
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
