// ViT (arXiv:2010.11929): tokens of an image, or its class. Arguments, parameter names and outputs
// follow monai.networks.nets.ViT: after the norm, then after each block.
#include "nn/blocks/vit.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

class ViT final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, VitOptions {
    static constexpr const char* kPurpose =
        "tokens; expected model=unetr, swin_unetr or seg_vit, which make an image of them";
    Sizes patch_size{16};
    int64_t num_layers = 12, num_classes = 2;
    bool classification = false;
    std::string pos_embed_type = "learnable", post_activation = "Tanh";
    void visit(auto& v) {
      VitOptions::visit(v);
      v("patch_size", patch_size, "sides of a patch, each a token; one number or one each");
      v("num_layers", num_layers, "transformer blocks", 1, 1000);
      v("pos_embed_type",
        pos_embed_type,
        "what tells a token its place; none: learnable, from zeros",
        {"none", "learnable", "sincos"});
      v("classification", classification, "one vector of num_classes for an image, not its tokens");
      v("num_classes", num_classes, "number of classes of the classification", 1, 1e5);
      v("post_activation", post_activation, "activation after the classification", {"Tanh", ""});
      ModelOptions::visit(v);
    }
    void check() {
      VitOptions::check();
      patch_size = per_dimension(patch_size, spatial_dims, "patch_size");
      for (std::size_t d = 0; d < patch_size.size(); ++d) {
        if (img_size[d] < patch_size[d] ||
            (proj_type == "perceptron" && img_size[d] % patch_size[d] != 0))
          throw ConfigError("ViT: img_size must be a multiple of patch_size");
      }
    }
  };
  explicit ViT(const Options& options)
      : FixedSizeModel(options,
                       options.img_size,
                       options.in_channels,
                       options.classification ? options.num_classes : options.hidden_size),
        options_(options),
        encoder_(*this, options, options.patch_size, options.num_layers, options.pos_embed_type) {
    if (!options.classification) return;
    class_token_ = register_parameter("cls_token", at::zeros({1, 1, options.hidden_size}));
    const auto head = std::make_shared<Linear>(options.hidden_size, options.num_classes);
    has_tanh_ = options.post_activation == "Tanh";
    head_ = has_tanh_
                ? put<torch::nn::Module>(*this, "classification_head")->register_module("0", head)
                : register_module("classification_head", head);
  }

  /// (N,T,E), or (N,num_classes)
  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    std::vector<at::Tensor> states =
        encoder_.forward(image, class_token_, settings.gradient_checkpointing);
    if (!head_) return states;
    const at::Tensor scores = call(*head_, states.front().select(1, 0));
    states.front() = has_tanh_ ? scores.tanh() : scores;
    return states;
  }

 private:
  Options options_;
  VitEncoder encoder_;
  at::Tensor class_token_;
  std::shared_ptr<Linear> head_;
  bool has_tanh_ = false;
};
CYTRA_REGISTER(Model, ViT, "ViT");

}  // namespace
}  // namespace cytra::nn
