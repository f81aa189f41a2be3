// A program that knows torch alone. It is linked without Cytra and with it, and prints the bits of
// what torch computes: Cytra must not change them (tests/host/compare.cmake).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace {

void print_bits(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous().to(at::kDouble);
  uint64_t hash = 1469598103934665603U;  // FNV-1a
  for (int64_t i = 0; i < values.numel(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, values.const_data_ptr<double>() + i, sizeof bits);
    hash = (hash ^ bits) * 1099511628211U;
  }
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}

struct Layer {
  std::vector<int64_t> image, weight, stride, padding;
};

}  // namespace

int main() {
  at::set_num_threads(2);
  at::manual_seed(1);
  const std::vector<Layer> layers{
      {{2, 32, 40, 41}, {32, 32, 3, 3}, {1, 1}, {1, 1}},  // by Winograd in Cytra
      {{1, 16, 9, 10, 11}, {32, 16, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
      {{1, 24, 9, 7, 10}, {20, 24, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},  // torch unrolls it
      {{4, 1, 20, 19}, {16, 1, 3, 3}, {1, 1}, {1, 1}},
      {{2, 32, 33, 34}, {64, 32, 3, 3}, {2, 2}, {1, 1}},
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [image, weight, stride, padding] = layers[i];
    const std::vector<int64_t> ones(stride.size(), 1), none(stride.size(), 0);
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = at::randn(image, type), w = at::randn(weight, type);
      const at::Tensor y = at::convolution(x, w, {}, stride, padding, ones, false, none, 1);
      const auto [of_input, of_weight, of_bias] = at::convolution_backward(at::ones_like(y),
                                                                           x,
                                                                           w,
                                                                           weight[0],
                                                                           stride,
                                                                           padding,
                                                                           ones,
                                                                           false,
                                                                           none,
                                                                           1,
                                                                           {true, true, true});
      const std::string name = std::to_string(i) + ' ' + c10::toString(type);
      print_bits(name + " output", y);
      print_bits(name + " input", of_input);
      print_bits(name + " weight", of_weight);
      print_bits(name + " bias", of_bias);
    }
  }
  print_bits("norm",
             at::instance_norm(at::randn({2, 8, 16, 16}), {}, {}, {}, {}, true, 0, 1e-5, true));
  print_bits("upsampled", at::upsample_bilinear2d(at::randn({1, 8, 9, 9}), {18, 18}, false));
  const at::Context& context = at::globalContext();
  std::printf("threads %d, deterministic %d, oneDNN %d\n",
              at::get_num_threads(),
              context.deterministicAlgorithms(),
              context.userEnabledMkldnn());
}
