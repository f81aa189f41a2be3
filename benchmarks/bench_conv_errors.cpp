// bench_conv_errors CHECKPOINT IMAGE: the errors of a trained network's convolutions, direct and
// Winograd's, against the same network in float64: for each convolution in the order of the forward
// pass, the largest and the root mean square difference of its output, as shares of the output's
// root mean square. IMAGE (one channel) is normalised, and its sides cut to what the network takes.
// One JSON line per convolution.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "data/sample/image_tensor.h"
#include "device/convolution.h"
#include "inference/models/trained_model.h"
#include "io/reader.h"
#include "nn/call.h"
#include "nn/model.h"

namespace {

using namespace cytra;

/// Keeps the outputs of convolutions, and the network's.
struct Outputs final : nn::Watcher {
  void begin(const torch::nn::Module& module, const at::Tensor& /*input*/) override {
    const std::string& name = module.name();
    is_conv.push_back(name.size() >= 6 && name.compare(name.size() - 6, 6, "::Conv") == 0);
  }
  void end(const at::Tensor& output) override {
    if (is_conv.back()) outputs.push_back(output.to(at::kDouble, false, /*copy=*/true));
    is_conv.pop_back();
  }
  std::vector<bool> is_conv;
  std::vector<at::Tensor> outputs;
};

std::vector<at::Tensor> outputs_of(const std::string& checkpoint,
                                   const at::Tensor& image,
                                   at::ScalarType type,
                                   device::ConvAlgorithm algorithm) {
  const std::shared_ptr<nn::Model> network =
      inference::load_models({{checkpoint}, {}}).at(0).network;
  network->to(type);
  device::set_conv_algorithm(algorithm);
  Outputs seen;
  nn::watcher = &seen;
  const c10::InferenceMode no_gradients;
  (*network)(image.to(type));
  nn::watcher = nullptr;
  return seen.outputs;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: bench_conv_errors CHECKPOINT IMAGE\n", stderr);
    return 2;
  }
  const auto loaded = inference::load_models({{arguments[1]}, {}}).at(0);
  at::Tensor image =
      data::to_tensor(
          io::read_image(arguments[2]), static_cast<int64_t>(loaded.divisor.size()), arguments[2])
          .to(at::kFloat)
          .squeeze(0);
  for (int64_t side = 0; side < image.dim(); ++side) {
    const int64_t multiple = loaded.divisor.at(static_cast<std::size_t>(side));
    image = image.narrow(side, 0, image.size(side) / multiple * multiple);
  }
  image = ((image - image.mean()) / image.std()).unsqueeze(0).unsqueeze(0);
  using device::ConvAlgorithm;
  const auto exact = outputs_of(arguments[1], image, at::kDouble, ConvAlgorithm::direct),
             direct = outputs_of(arguments[1], image, at::kFloat, ConvAlgorithm::direct),
             winograd = outputs_of(arguments[1], image, at::kFloat, ConvAlgorithm::winograd);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double rms = exact[i].square().mean().sqrt().item<double>();
    const auto errors = [&](const at::Tensor& output) {
      const at::Tensor difference = (output - exact[i]) / rms;
      return std::pair(difference.abs().max().item<double>(),
                       difference.square().mean().sqrt().item<double>());
    };
    const auto [most, mean] = errors(direct[i]);
    const auto [winograd_most, winograd_mean] = errors(winograd[i]);
    std::printf(R"({"convolution": %zu, "channels": %lld, "direct": [%.3g, %.3g], )"
                R"("winograd": [%.3g, %.3g]})"
                "\n",
                i + 1,
                static_cast<long long>(exact[i].size(1)),
                most,
                mean,
                winograd_most,
                winograd_mean);
  }
}
