// Part of pipelines/segmenter/segmenters.h: Cytra's networks as segmenters. A checkpoint holds the
// options of its network; for weights of Meta they follow from the shapes.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/fast_precision.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"
#include "nn/fingerprint.h"
#include "nn/promptable.h"
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

/// What the shapes in a file of weights say about the network.
class SamShapes {
 public:
  SamShapes(const std::string& path, const io::TensorViews& tensors)
      : path_(path), tensors_(tensors) {
    const std::string first = "image_encoder.patch_embed.proj.weight";
    bool is_tiny_vit = false;
    for (const auto& [name, view] : tensors) {
      if (name.ends_with(first)) {
        front_ = name.substr(0, name.size() - first.size());
        return;
      }
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
  /// The shapes do not show the number of the decoder's heads: all published networks have 8.
  config::Node model() const {
    const std::string encoder = "image_encoder.", block = encoder + "blocks.0.";
    const int64_t features = size(encoder + "patch_embed.proj.weight", 0);
    const int64_t patch = size(encoder + "patch_embed.proj.weight", 3);
    const int64_t side = size(encoder + "pos_embed", 1);
    const int64_t depth = count(encoder + "blocks.{}.norm1.weight");
    int64_t window = side;
    std::vector<int64_t> whole;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t reach =
          (size(fmt::format("{}blocks.{}.attn.rel_pos_h", encoder, i), 0) + 1) / 2;
      if (reach == side) whole.push_back(i);
      window = std::min(window, reach);
    }
    config::Node node = config::Node::make_map();
    node.set("_target_", config::Node::make_string("Sam"));
    const auto set = [&](const char* key, int64_t value) {
      node.set(key, config::Node::make_integer(value));
    };
    set("img_size", side * patch);
    set("patch_size", patch);
    set("embed_dim", features);
    set("depth", depth);
    set("num_heads", features / size(block + "attn.rel_pos_h", 1));
    set("out_chans", size(encoder + "neck.0.weight", 0));
    set("window_size", window);
    node.set(
        "mlp_ratio",
        config::parse_yaml(fmt::format("{}",
                                       static_cast<double>(size(block + "mlp.lin1.weight", 0)) /
                                           static_cast<double>(features)),
                           "mlp_ratio"));
    node.set("global_attn_indexes", config::Node::make_list(whole));
    const std::string decoder = "mask_decoder.", head = decoder + "iou_prediction_head.layers.";
    set("mask_in_chans", size("prompt_encoder.mask_downscaling.3.weight", 0));
    set("num_multimask_outputs", size(decoder + "mask_tokens.weight", 0) - 1);
    set("decoder_depth", count(decoder + "transformer.layers.{}.norm1.weight"));
    set("decoder_mlp_dim", size(decoder + "transformer.layers.0.mlp.lin1.weight", 0));
    set("iou_head_depth", count(head + "{}.weight"));
    set("iou_head_hidden_dim", size(head + "0.weight", 0));
    return node;
  }

 private:
  /// Throws: DataError when it is not there.
  int64_t size(const std::string& name, std::size_t dimension) const {
    const auto found = tensors_.find(front_ + name);
    if (found == tensors_.end() || found->second.shape.size() <= dimension)
      throw DataError("{}: not weights of Segment Anything with a ViT: '{}' is {}",
                      path_,
                      name,
                      found == tensors_.end() ? "missing" : "of another shape");
    return found->second.shape[dimension];
  }
  int64_t count(const std::string& pattern) const {
    int64_t n = 0;
    while (tensors_.count(front_ + fmt::format(fmt::runtime(pattern), n)) > 0) ++n;
    return n;
  }
  const std::string& path_;
  const io::TensorViews& tensors_;
  std::string front_;  // what stands before the names
};

/// The configuration of the network whose weights the file holds.
config::Node model_of_file(const std::string& path) {
  if (io::is_torch_file(path)) {
    const io::TorchFile file(path);
    return SamShapes(path, file.tensors()).model();
  }
  const io::SafetensorsFile file(path);
  if (file.metadata().count("config") == 0) return SamShapes(path, file.tensors()).model();
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
