#pragma once
// Include only from .cpp files of nn, tasks, training and app: torch/nn/module.h costs 20 s without
// the PCH.
#include <memory>
#include <string>

#include <torch/nn/module.h>

#include "config/options.h"
#include "nn/recompute.h"

namespace cytra::nn {

/// Keys that every model takes: its Options are derived from them.
struct ModelOptions {
  std::optional<bool> channels_last;
  bool gradient_checkpointing = false;
  template <class V>
  void visit(V& v) {
    v("channels_last",
      channels_last,
      "memory format; null: true on a CPU, where it is faster, false on a GPU");
    v("gradient_checkpointing",
      gradient_checkpointing,
      "compute every block's activations again in the backward pass instead of keeping them: less "
      "memory, about a third more time");
  }
};

/// A network from an image to an image. Registered under its MONAI class name.
struct Model : torch::nn::Module {
  static constexpr const char* kKind = "model";
  /// image: (N,C,[D,]H,W) float -> logits (N,K,[D,]H,W).
  virtual at::Tensor forward(const at::Tensor& image) = 0;
  /// Input sides must be multiples of this, per spatial dimension.
  virtual std::vector<int64_t> divisor() const = 0;
  bool channels_last = false, gradient_checkpointing = false;

  /// forward() after checking the shape and bringing the image into the model's memory format.
  /// Throws: DataError saying which shape was expected.
  at::Tensor operator()(const at::Tensor& image);
  virtual int64_t in_channels() const = 0;
  virtual int64_t spatial_dims() const = 0;

 protected:
  /// block->forward(inputs...) of one of the blocks that gradient_checkpointing works by.
  template <class Block, class... Inputs>
  at::Tensor run(const std::shared_ptr<Block>& block, const Inputs&... inputs) const {
    return gradient_checkpointing ? checkpoint(block, inputs...) : call(*block, inputs...);
  }
};

/// From a config node with `_target_`; the keys of ModelOptions are set here (channels_last null:
/// place_model chooses). Weights are drawn from torch's generator. Throws: ConfigError.
std::shared_ptr<Model> make_model(const config::Node& node);

/// Moves the model to its device, and where `node` leaves channels_last open (null), chooses it: on
/// a CPU, where it is up to twice as fast (docs/benchmarks.md), not on a GPU.
void place_model(Model& model, const config::Node& node, c10::Device device);

int64_t count_parameters(const Model& model);

}  // namespace cytra::nn
