// Runs PyTorch's operations one after the other.
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/log.h"
#include "device/convolution.h"
#include "inference/engines/entry.h"
#include "nn/flop_counter.h"
#include "ops/conv/constant_weights.h"
#include "ops/conv/winograd/winograd.h"
#include "ops/linear/int8_weights.h"

namespace cytra::inference {
namespace {

class Eager final : public FixedEngine {
 public:
  Eager(const EngineModel& model, const EngineOptions& options)
      : model_(model), precision_(precision_of(options)) {
    if (options.quantization == "int8_dynamic") int8_ = std::make_unique<ops::Int8Weights>();
  }
  std::vector<Tensor> run(const Tensor& windows) override {
    if (const Kept kept = take_kept(); kept.window.defined() && kept.window.equal(windows))
      return kept.outputs;
    const ops::ConstantWeights::Scope constant(weights_);
    std::optional<ops::Int8Weights::Scope> in_int8;
    if (int8_) in_int8.emplace(*int8_);
    if (!model_.device.is_cpu()) return forward_with(model_, precision_, windows);
    std::vector<std::vector<Tensor>> parts;  // by output
    for (const Tensor& some : windows.split(windows_at_once(windows))) {
      std::vector<Tensor> outputs = forward_with(model_, precision_, some);
      parts.resize(outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(std::move(outputs[i]));
    }
    std::vector<Tensor> outputs;
    for (std::vector<Tensor>& part : parts)
      outputs.push_back(part.size() == 1 ? std::move(part[0]) : at::cat(part));
    return outputs;
  }
  std::string text() const override {
    const std::string layers =
        int8_ ? fmt::format("{} linear layers in int8, ", int8_->count()) : "";
    return "eager, " + layers + name_of(precision_.compute);
  }
  /// Runs a window. Its outputs are kept for the next run(), which is likely to be of the same one.
  void run_first(const Tensor& window) {
    Kept kept{window.clone(), run(window)};
    const std::lock_guard lock(mutex_);
    kept_ = std::move(kept);
  }
  bool has_int8() const { return int8_ && int8_->count() > 0; }
  bool takes_any_size() const override { return true; }
  bool was_accepted() const override { return int8_ == nullptr; }

 private:
  struct Kept {
    Tensor window;
    std::vector<Tensor> outputs;
  };
  Kept take_kept() {
    const std::lock_guard lock(mutex_);
    return std::exchange(kept_, {});
  }

  const EngineModel model_;
  const device::Precision precision_;
  std::mutex mutex_;
  Kept kept_;
  ops::ConstantWeights weights_;
  std::unique_ptr<ops::Int8Weights> int8_;  // null: none
};

int rank_eager(const EngineModel&, const EngineOptions&) {
  return 1;
}

/// Eager, where it is faster on a CPU than OpenVINO, which has direct convolutions alone and is
/// otherwise faster: where Winograd's spare enough of the multiplications of a window.
std::unique_ptr<FixedEngine> best_eager(const EngineModel& model,
                                        const EngineOptions& options,
                                        const Tensor& example) {
  constexpr double kLeast = 0.4;  // of all; measured: docs/benchmarks.md, "inference"
  if (!model.device.is_cpu() || precision_of(options).compute != at::kFloat ||
      options.quantization != "none" || model.torchscript ||
      model.onnx ||  // they have others' convolutions
      device::conv_algorithm() == device::ConvAlgorithm::direct)
    return nullptr;
  const c10::InferenceMode inference_mode;
  auto engine = std::make_unique<Eager>(model, options);
  const double before = ops::cpu::spared_multiplications();
  const nn::Flops all = nn::count_flops([&] { engine->run_first(example.narrow(0, 0, 1)); });
  const double spared = 2 * (ops::cpu::spared_multiplications() - before) /
                        std::max<double>(1, static_cast<double>(all.forward));
  if (spared < kLeast) return nullptr;
  log::info("{}: eager, float32; Winograd's convolutions spare {:.0f} % of the multiplications",
            model.name,
            100 * spared);
  return engine;
}

std::unique_ptr<FixedEngine> make_eager(const EngineModel& model,
                                        const EngineOptions& options,
                                        const Tensor& example) {
  auto engine = std::make_unique<Eager>(model, options);
  if (options.quantization == "int8_dynamic") {
    engine->run(example.narrow(0, 0, 1));
    if (!engine->has_int8())
      throw EngineUnfit("the model has no linear layers; int8 takes convolutions, too", false);
  }
  return engine;
}

const bool added_eager = add_engine("eager", {rank_eager, make_eager, best_eager});

}  // namespace
}  // namespace cytra::inference
