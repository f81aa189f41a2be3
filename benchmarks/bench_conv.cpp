// bench_conv ALGORITHM THREADS PASSES N C K SIDES...: a convolution of 3 pixels a side on random
// images with channels last. ALGORITHM: direct or winograd. Milliseconds (median of the passes) of
// the output and of the gradients of the input and of the weight, in one JSON line.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "base/stopwatch.h"
#include "device/convolution.h"
#include "ops/conv/backward.h"
#include "ops/conv/conv.h"

int main(int count, char** arguments) {
  using namespace cytra;
  if (count < 9) {
    std::fputs("usage: bench_conv ALGORITHM THREADS PASSES N C K SIDES...\n", stderr);
    return 2;
  }
  device::set_conv_algorithm(std::string(arguments[1]) == "winograd"
                                 ? device::ConvAlgorithm::winograd
                                 : device::ConvAlgorithm::direct);
  at::set_num_threads(std::atoi(arguments[2]));
  const int passes = std::atoi(arguments[3]);
  std::vector<int64_t> numbers;
  for (int i = 4; i < count; ++i) numbers.push_back(std::atoll(arguments[i]));
  const std::size_t dims = numbers.size() - 3;
  const std::vector<int64_t> ones(dims, 1), none(dims, 0);
  const auto format =
      dims == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
  std::vector<int64_t> of_image{numbers[0], numbers[1]}, of_output{numbers[0], numbers[2]},
      of_weight{numbers[2], numbers[1]};
  for (std::size_t side = 0; side < dims; ++side) {
    of_image.push_back(numbers[3 + side]);
    of_output.push_back(numbers[3 + side]);
    of_weight.push_back(3);
  }
  const c10::InferenceMode no_gradients;
  const at::Tensor image = at::randn(of_image).contiguous(format),
                   grad = at::randn(of_output).contiguous(format),
                   weight = at::randn(of_weight).contiguous(format);
  const ops::ConvOptions options{ones, ones, ones, false, none, 1};
  const auto milliseconds = [&](const auto& work) {
    std::vector<double> times;
    for (int pass = -1; pass < passes; ++pass) {
      const Stopwatch stopwatch;
      work();
      if (pass >= 0) times.push_back(1000 * stopwatch.seconds());  // the first one warms up
    }
    std::nth_element(times.begin(), times.begin() + passes / 2, times.end());
    return times[static_cast<std::size_t>(passes / 2)];
  };
  const auto gradients = [&](std::array<bool, 3> needs) {
    ops::cpu::conv_gradients(grad, image, weight, options, needs);
  };
  const double output = milliseconds([&] { ops::convolution(image, weight, {}, options); });
  const double of_input_ms = milliseconds([&] { gradients({true, false, false}); });
  const double of_weight_ms = milliseconds([&] { gradients({false, true, false}); });
  std::printf(R"({"forward": %.3f, "data": %.3f, "weight": %.3f})"
              "\n",
              output,
              of_input_ms,
              of_weight_ms);
}
