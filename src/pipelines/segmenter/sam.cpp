// Part of pipelines/segmenter/segmenters.h: Cytra's networks as segmenters. A checkpoint holds the
// options of its network; for weights of Meta they follow from the shapes.
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/fast_precision.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"
#include "nn/fingerprint.h"
#include "nn/promptable.h"
#include "nn/weight_shapes.h"
#include "nn/weights.h"
#include "pipelines/segmenter/segmenters.h"

namespace cytra::pipelines {
namespace {

using inference::EngineOptions;

/// Embeddings (B,C,s,s) and boxes (B,4) as one tensor, which an engine takes: (B,C,s s + 1), a box
/// at the beginning of the last column.
at::Tensor packed(const at::Tensor& embeddings, const at::Tensor& boxes) {
  const at::Tensor column = at::constant_pad_nd(boxes, {0, embeddings.size(1) - 4}).unsqueeze(2);
  return at::cat({embeddings.flatten(2), column}, 2);
}

at::Tensor masks_of_packed(nn::PromptableModel& model, const at::Tensor& both) {
  const auto side = std::lround(std::sqrt(static_cast<double>(both.size(2) - 1)));
  const at::Tensor embeddings = both.narrow(2, 0, side * side).unflatten(2, {side, side});
  return model.decode(embeddings, {both.select(2, side * side).narrow(1, 0, 4)}).logits.squeeze(1);
}

/// The options for the image encoder. On a CPU it takes as long by OpenVINO as by its own kernels
/// of attention (docs/batch_segmentation.md), and takes seconds to prepare.
EngineOptions encoder_options(EngineOptions options, c10::Device device) {
  if (device.is_cpu() && options.backend == "auto" && options.quantization != "int8")
    options.backend = "eager";
  return options;
}

/// The options for the mask decoder. On a CPU its own kernels go through an image's tokens once,
/// and need fewer multiplications than a graph of single operations.
EngineOptions decoder_options(EngineOptions options, c10::Device device) {
  if (!device.is_cpu()) return options;
  options.backend = "eager";
  if (options.quantization == "int8") options.quantization = "none";
  return options;
}

class SamSegmenter final : public PromptedSegmenter {
 public:
  SamSegmenter(const std::shared_ptr<nn::PromptableModel>& model,
               c10::Device device,
               const EngineOptions& options,
               const std::string& fingerprint)
      : PromptedSegmenter(model->fixed_size().front(), model->pixels()),
        device_(device),
        fingerprint_(fingerprint + options.text_of_values()),
        encoder_{{[model](const at::Tensor& images) -> std::vector<at::Tensor> {
                    return {(*model)(images)};
                  },
                  device,
                  fingerprint + " encoder",
                  {},
                  {},
                  "engine of the image encoder"},
                 encoder_options(options, device)},
        decoder_{{[model](const at::Tensor& both) -> std::vector<at::Tensor> {
                    return {masks_of_packed(*model, both)};
                  },
                  device,
                  fingerprint + " decoder",
                  {},
                  {},
                  "engine of the mask decoder"},
                 decoder_options(options, device)} {
    nn::place(*model, device, device::uses_tensor_cores(options.precision, device));
  }
  at::Tensor encode(const at::Tensor& images) override { return encoder_.run(images.to(device_)); }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    if (boxes.size(0) == 0)
      return embeddings.new_empty({0, 4 * embeddings.size(2), 4 * embeddings.size(3)});
    return decoder_.run(packed(embeddings.to(device_), boxes.to(device_, at::kFloat)));
  }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  /// A part of the network, and its engine, which is made of the first inputs that come.
  struct Part {
    inference::EngineModel model;
    EngineOptions options;
    std::unique_ptr<inference::Engine> engine = {};
    at::Tensor run(const at::Tensor& input) {
      if (!engine) engine = inference::make_engine(model, options, input);
      return engine->run(input).front();
    }
  };
  c10::Device device_;
  std::string fingerprint_;
  Part encoder_, decoder_;
};

/// What stands before the names of weights of Segment Anything. Throws: DataError for others.
std::string front_of(const std::string& path, const io::TensorViews& tensors) {
  const std::string first = "image_encoder.patch_embed.proj.weight";
  bool is_tiny_vit = false;
  for (const auto& [name, view] : tensors) {
    if (name.ends_with(first)) return name.substr(0, name.size() - first.size());
    is_tiny_vit = is_tiny_vit || name.find("image_encoder.patch_embed.seq.") != std::string::npos;
  }
  if (is_tiny_vit)
    throw DataError(path +
                    ": MobileSAM's TinyViT, which is not known here; expected weights of Segment "
                    "Anything with a ViT (sam_vit_b_01ec64.pth), or TorchScript");
  throw DataError(
      "{}: not weights of Segment Anything with a ViT (there is no '{}'); a checkpoint of `train "
      "experiment=promptable/cells` and TorchScript will do, too",
      path,
      first);
}

/// What the shapes in a file of weights say about the network. They do not show the number of the
/// decoder's heads: all published networks have 8.
config::Node model_of_shapes(const std::string& path, const io::TensorViews& tensors) {
  const nn::WeightShapes shapes(
      path, tensors, front_of(path, tensors), "Segment Anything with a ViT");
  config::Node node = nn::sam_encoder_options(shapes, "image_encoder.");
  node.set("_target_", config::Node::make_string("Sam"));
  const auto set = [&](const char* key, int64_t value) {
    node.set(key, config::Node::make_integer(value));
  };
  const std::string decoder = "mask_decoder.", head = decoder + "iou_prediction_head.layers.";
  set("mask_in_chans", shapes.size("prompt_encoder.mask_downscaling.3.weight", 0));
  set("num_multimask_outputs", shapes.size(decoder + "mask_tokens.weight", 0) - 1);
  set("decoder_depth", shapes.count(decoder + "transformer.layers.{}.norm1.weight"));
  set("decoder_mlp_dim", shapes.size(decoder + "transformer.layers.0.mlp.lin1.weight", 0));
  set("iou_head_depth", shapes.count(head + "{}.weight"));
  set("iou_head_hidden_dim", shapes.size(head + "0.weight", 0));
  return node;
}

/// The configuration of the network whose weights the file holds.
config::Node model_of_file(const std::string& path) {
  if (io::is_torch_file(path)) {
    const io::TorchFile file(path);
    return model_of_shapes(path, file.tensors());
  }
  const io::SafetensorsFile file(path);
  if (file.metadata().count("config") == 0) return model_of_shapes(path, file.tensors());
  return nn::checkpoint_config(path).at("task.model");
}

}  // namespace

std::unique_ptr<PromptedSegmenter> open_sam(const std::string& path,
                                            c10::Device device,
                                            const inference::EngineOptions& engine) {
  const config::Node node = model_of_file(path);
  const auto model = std::dynamic_pointer_cast<nn::PromptableModel>(make<nn::Model>(node));
  if (model == nullptr)
    throw DataError(path +
                    ": its network takes no prompts; expected a checkpoint of `train "
                    "experiment=promptable/cells`");
  nn::load_weights(path, *model);
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  return std::make_unique<SamSegmenter>(model, device, engine, nn::fingerprint_of(*model, node));
}

}  // namespace cytra::pipelines
