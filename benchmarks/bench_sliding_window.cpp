// bench_sliding_window DIMS OVERLAP CLASSES REPEATS: what windows cost around a model that does
// nothing, in CPU seconds of one image (the least of REPEATS, after one to warm up). 2: an image of
// 2048 x 2048, windows of 512 x 512; 3: 128 x 256 x 256, 64 x 128 x 128. CLASSES > 1: the model
// gives that many channels. One JSON line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "base/files.h"
#include "inference/windows/sliding_window.h"

namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// "VmHWM": the most memory this process has had, in MB.
double peak_mb() {
  const std::string status = cytra::read_file("/proc/self/status");
  return std::atof(status.c_str() + status.find("VmHWM:") + 6) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: bench_sliding_window DIMS OVERLAP CLASSES REPEATS\n", stderr);
    return 2;
  }
  const int64_t dims = std::atoll(argv[1]), classes = std::atoll(argv[3]);
  at::set_num_threads(1);
  const c10::InferenceMode inference_mode;
  cytra::inference::SlidingWindowOptions options;
  options.roi_size =
      dims == 2 ? std::vector<int64_t>{512, 512} : std::vector<int64_t>{64, 128, 128};
  options.overlap = {std::atof(argv[2])};
  const at::Tensor image = at::rand(dims == 2 ? std::vector<int64_t>{1, 1, 2048, 2048}
                                              : std::vector<int64_t>{1, 1, 128, 256, 256});
  const auto model = [&](const at::Tensor& windows) {
    if (classes == 1) return windows;
    std::vector<int64_t> shape = windows.sizes().vec();
    shape[1] = classes;
    return windows.expand(shape).contiguous();
  };
  const double base = peak_mb();
  double least = 1e9;
  for (int64_t i = 0; i <= std::atoll(argv[4]); ++i) {
    const double begin = cpu_seconds();
    const at::Tensor output = cytra::inference::sliding_window(image, model, options);
    if (i > 0) least = std::min(least, cpu_seconds() - begin);
  }
  std::printf("{\"cpu_ms\": %.3f, \"peak_mb\": %.1f}\n", least * 1e3, peak_mb() - base);
}
