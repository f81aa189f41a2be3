// bench_norm [ROUNDS]: the norms of src/ops/norm/norm.h beside ATen's with the activation in place,
// forward and backward: CPU milliseconds, the least of ROUNDS, as a Markdown table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "ops/norm/norm.h"

namespace {

using cytra::ops::Activation;
using Norm = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

double cpu_ms() {
  return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Case {
  const char* name;
  Norm ours, torch;
};

at::Tensor activate_in_place(at::Tensor y, const Activation& activation) {
  if (activation.kind == Activation::kRelu) return at::relu_(y);
  if (activation.kind == Activation::kLeakyRelu) return at::leaky_relu_(y, activation.slope);
  return cytra::ops::activate(y, activation);
}

std::vector<Case> cases(const Activation& activation) {
  namespace ops = cytra::ops;
  return {{"instance",
           [=](const auto& x, const auto& w, const auto& b) {
             return ops::instance_norm(x, w, b, 1e-5, activation);
           },
           [=](const auto& x, const auto& w, const auto& b) {
             return activate_in_place(at::instance_norm(x, w, b, {}, {}, true, 0.1, 1e-5, true),
                                      activation);
           }},
          {"group (8)",
           [=](const auto& x, const auto& w, const auto& b) {
             return ops::group_norm(x, 8, w, b, 1e-5, activation);
           },
           [=](const auto& x, const auto& w, const auto& b) {
             return activate_in_place(at::group_norm(x, 8, w, b, 1e-5), activation);
           }},
          {"batch",
           [=](const auto& x, const auto& w, const auto& b) {
             return ops::batch_norm(x, w, b, {}, true, 1e-5, activation);
           },
           [=](const auto& x, const auto& w, const auto& b) {
             return activate_in_place(at::batch_norm(x, w, b, {}, {}, true, 0.1, 1e-5, true),
                                      activation);
           }}};
}

struct Input {
  at::Tensor x, weight, bias, grad;
};

double least(const Norm& norm, const Input& input, int rounds, bool backward) {
  double best = 1e30;
  for (int round = -1; round < rounds; ++round) {
    const double begin = cpu_ms();
    const at::Tensor y = norm(input.x, input.weight, input.bias);
    if (backward) y.backward(input.grad);
    const double end = cpu_ms();
    if (round >= 0) best = std::min(best, end - begin);
    for (const at::Tensor* leaf : {&input.x, &input.weight, &input.bias})
      leaf->mutable_grad().reset();
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const std::vector<std::pair<const char*, Activation>> activations{
      {"none", {}},
      {"ReLU", {Activation::kRelu}},
      {"leaky ReLU", {Activation::kLeakyRelu, 0.01}},
      {"GELU", {Activation::kGelu}}};
  const std::vector<std::vector<int64_t>> shapes{
      {4, 32, 256, 256}, {1, 32, 32, 64, 64}, {4, 256, 32, 32}};
  std::printf(
      "| shape | type | layout | norm | activation | Cytra | torch | ratio "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const auto& shape : shapes) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const bool is_last : {false, true}) {
        const auto format = !is_last            ? at::MemoryFormat::Contiguous
                            : shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                : at::MemoryFormat::ChannelsLast3d;
        Input input{at::randn(shape).to(type).contiguous(format).requires_grad_(),
                    at::ones(shape[1]).requires_grad_(),
                    at::zeros(shape[1]).requires_grad_(),
                    at::randn(shape).to(type).contiguous(format)};
        std::string size;
        for (const int64_t side : shape) size += (size.empty() ? "" : "x") + std::to_string(side);
        for (const auto& [activation_name, activation] : activations) {
          for (const Case& each : cases(activation)) {
            const double ours = least(each.ours, input, rounds, true),
                         torch = least(each.torch, input, rounds, true);
            std::printf("| %s | %s | %s | %s | %s | %.2f | %.2f | %.2f |\n",
                        size.c_str(),
                        c10::toString(type),
                        is_last ? "last" : "first",
                        each.name,
                        activation_name,
                        ours,
                        torch,
                        torch / ours);
          }
        }
      }
    }
  }
}
