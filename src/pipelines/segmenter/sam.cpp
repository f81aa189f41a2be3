// Part of pipelines/segmenter/segmenters.h: Cytra's networks as segmenters. A checkpoint holds the
// options of its network; for weights of Meta they follow from the shapes.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "device/fast_precision.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"
#include "nn/fingerprint.h"
#include "nn/promptable.h"
#include "nn/weights.h"
#include "pipelines/segmenter/segmenters.h"

namespace cytra::pipelines {
namespace {

class SamSegmenter final : public PromptedSegmenter {
 public:
  SamSegmenter(std::shared_ptr<nn::PromptableModel> model,
               c10::Device device,
               std::string fingerprint)
      : PromptedSegmenter(model->fixed_size().front(), model->pixels()),
        model_(std::move(model)),
        device_(device),
        fingerprint_(std::move(fingerprint)) {
    nn::place(*model_, device_, device::uses_tensor_cores("32", device_));
  }
  at::Tensor encode(const at::Tensor& images) override {
    const at::NoGradGuard no_grad;
    return (*model_)(images.to(device_));
  }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    const at::NoGradGuard no_grad;
    return model_->decode(embeddings.to(device_), {boxes.to(device_, at::kFloat)})
        .logits.squeeze(1)
        .to(at::kFloat);
  }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::shared_ptr<nn::PromptableModel> model_;
  c10::Device device_;
  std::string fingerprint_;
};

/// What the shapes in a file of weights say about the network.
class SamShapes {
 public:
  SamShapes(const std::string& path, const io::TensorViews& tensors)
      : path_(path), tensors_(tensors) {
    const std::string first = "image_encoder.patch_embed.proj.weight";
    bool is_tiny_vit = false;
    for (const auto& [name, view] : tensors) {
      if (ends_with(name, first)) {
        front_ = name.substr(0, name.size() - first.size());
        return;
      }
      is_tiny_vit = is_tiny_vit || name.find("image_encoder.patch_embed.seq.") != std::string::npos;
    }
    if (is_tiny_vit)
      throw DataError(path +
                      ": MobileSAM's TinyViT, which is not known here; expected weights of Segment "
                      "Anything with a ViT (sam_vit_b_01ec64.pth), or TorchScript");
    throw DataError(fmt::format(
        "{}: not weights of Segment Anything with a ViT (there is no '{}'); a checkpoint of `train "
        "experiment=promptable/cells` and TorchScript will do, too",
        path,
        first));
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
      throw DataError(fmt::format("{}: not weights of Segment Anything with a ViT: '{}' is {}",
                                  path_,
                                  name,
                                  found == tensors_.end() ? "missing" : "of another shape"));
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

std::unique_ptr<PromptedSegmenter> open_sam(const std::string& path, c10::Device device) {
  const config::Node node = model_of_file(path);
  const auto model = std::dynamic_pointer_cast<nn::PromptableModel>(make<nn::Model>(node));
  if (model == nullptr)
    throw DataError(path +
                    ": its network takes no prompts; expected a checkpoint of `train "
                    "experiment=promptable/cells`");
  nn::load_weights(path, *model, true);
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  return std::make_unique<SamSegmenter>(model, device, nn::fingerprint_of(*model, node));
}

}  // namespace cytra::pipelines
