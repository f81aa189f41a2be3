#pragma once
// Include only from .cpp files of nn, tasks, training and app: torch/nn/module.h costs 20 s without
// the PCH.
#include <memory>

#include <torch/nn/module.h>

#include "config/options.h"
#include "nn/recompute.h"

namespace cytra::nn {

/// Keys that every model takes: its Options are derived from them, and its constructor hands them
/// to Model.
struct ModelOptions {
  std::optional<bool> channels_last, compile_model;
  bool gradient_checkpointing = false;
  std::string compile_mode = "default";
  void visit(auto& v) {
    v("channels_last",
      channels_last,
      "memory format; null: true where it is faster: on a CPU, and on a GPU in half precision and "
      "TF32");
    v("gradient_checkpointing",
      gradient_checkpointing,
      "compute every block's activations again in the backward pass instead of keeping them: less "
      "memory, about a third more time");
    v("compile_model",
      compile_model,
      "record the training step on a GPU once for each shape of batches; null: where launching it "
      "takes half as long as computing it, or longer");
    v("compile_mode",
      compile_mode,
      "torch.compile's: how much is tried; the -no-cudagraphs form records no CUDA graph",
      {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"});
  }
};

/// A network from an image to an image, unless its Options say what it gives instead, and where it
/// is expected: `static constexpr const char* kPurpose`. Registered under its MONAI class name.
struct Model : torch::nn::Module {
  static constexpr const char* kKind = "model";
  explicit Model(const ModelOptions& options) : settings(options) {}
  /// image: (N,C,[D,]H,W) float -> logits (N,K,[D,]H,W).
  virtual at::Tensor forward(const at::Tensor& image) = 0;
  /// Every output, that of forward() first. A model with deep supervision in training mode then
  /// gives coarser ones for the same target; one with heads gives the other heads' outputs. By
  /// default there is only forward()'s.
  virtual std::vector<at::Tensor> forward_all(const at::Tensor& image) { return {forward(image)}; }
  /// The name of forward()'s last layer, where that is a convolution of 1x1 and nothing follows;
  /// "": there is none.
  virtual std::string last_layer() const { return ""; }
  /// What forward() gives its last_layer(): (N,F,[D,]H,W).
  virtual at::Tensor features(const at::Tensor& image);
  /// The names of the outputs of a model with heads; empty: they have no names.
  virtual std::vector<std::string> output_names() const { return {}; }
  /// Norms that train by their process's batch and are none of Cytra's layers, by name. By default
  /// the modules that have running statistics.
  virtual std::vector<std::string> foreign_batch_norms() const;
  /// Input sides must be multiples of this, per spatial dimension.
  virtual std::vector<int64_t> divisor() const = 0;
  /// The only sides that it takes, per spatial dimension (position embeddings); empty: any.
  virtual std::vector<int64_t> fixed_size() const { return {}; }
  virtual int64_t in_channels() const = 0;
  /// Channels K of forward()'s output.
  virtual int64_t out_channels() const = 0;
  virtual int64_t spatial_dims() const = 0;
  ModelOptions settings;
  bool channels_last = false;  // of weights and images: as place() chose

  /// forward() after checking the shape and bringing the image into the model's memory format.
  /// Throws: DataError saying which shape was expected.
  at::Tensor operator()(const at::Tensor& image);
  /// forward_all() after the same checks.
  std::vector<at::Tensor> all(const at::Tensor& image);
  /// features() after the same checks.
  at::Tensor checked_features(const at::Tensor& image) { return features(checked(image)); }

 private:
  at::Tensor checked(const at::Tensor& image) const;

 protected:
  /// block->forward(inputs...) of one of the blocks that gradient_checkpointing works by.
  template <class Block, class... Inputs>
  at::Tensor run(const std::shared_ptr<Block>& block, Inputs&&... inputs) const {
    return settings.gradient_checkpointing ? checkpoint(block, inputs...)
                                           : call(*block, std::forward<Inputs>(inputs)...);
  }
};

/// Moves the model to its device, in the memory format that its settings ask for. Where they leave
/// it open, channels come last on a CPU, where that is up to twice as fast (docs/benchmarks.md),
/// and on a GPU where convolutions run `on_tensor_cores` (device/fast_precision.h); its other
/// convolutions are faster with channels first.
void place(Model& model, c10::Device device, bool on_tensor_cores = false);

/// Parameters and buffers of a floating type take this one; indices stay as they are, which
/// Module::to() would change, too.
void cast(Model& model, at::ScalarType type);

int64_t count_parameters(const Model& model);

}  // namespace cytra::nn
