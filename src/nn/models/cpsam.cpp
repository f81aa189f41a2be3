// Cellpose-SAM (Pachitariu 2025, doi:10.1101/2025.04.28.651001): the image encoder of Segment
// Anything with small patches, each block attending to the whole image, and flows of its tokens.
// Parameter names and outputs are those of cellpose.vit.CPSAM of cellpose 4.2; the defaults are
// those of its published weights.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/sam_encoder.h"

namespace cytra::nn {
namespace {

class Cpsam final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, SamEncoderOptions {
    int64_t out_channels = 3;
    Options() {
      img_size = 256;
      patch_size = 8;
      embed_dim = 1024;
      depth = 24;
      num_heads = 16;
      global_attn_indexes = {5, 11, 17, 23};
      pretrained_side = 64;
      rdrop = 0.4;
    }
    void visit(auto& v) {
      SamEncoderOptions::visit(v);
      v("pretrained_side",
        pretrained_side,
        "tokens of the sides of Segment Anything's image, for which the blocks of "
        "global_attn_indexes, and of window_size, for which the others have learned positions; "
        "all attend to the whole image here",
        1,
        1e4);
      v("rdrop",
        rdrop,
        "chance in training that the last block is left out for an image; earlier ones less often",
        0,
        1);
      v("out_channels",
        out_channels,
        "logits K: the flow along Y, along X, and the object",
        1,
        1e5);
      ModelOptions::visit(v);
    }
  };
  explicit Cpsam(const Options& options)
      : FixedSizeModel(options, {options.img_size, options.img_size}, 3, options.out_channels),
        patch_(options.patch_size),
        encoder_(put<SamEncoder>(*this, "encoder", options)) {
    const int64_t pixels = options.out_channels * patch_ * patch_;
    out_ = put<Conv>(*this, "out", options.out_chans, pixels, ConvOptions{{1, 1}, {1, 1}});
    pixels_ = register_parameter(
        "W2", at::eye(pixels).reshape({pixels, options.out_channels, patch_, patch_}), false);
    for (const char* name : {"diam_labels", "diam_mean"})  // pixels; no part of the computation
      register_parameter(name, at::full({1}, 30.0), false);
    for (auto& item : encoder_->named_parameters())  // Cellpose never trains them
      if (item.key().starts_with("patch_embed.")) item.value().requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& image) override {
    const at::Tensor tokens = call(*encoder_, image, settings.gradient_checkpointing);
    return at::conv_transpose2d(call(*out_, tokens), pixels_, {}, {patch_, patch_});
  }

 private:
  int64_t patch_;
  std::shared_ptr<SamEncoder> encoder_;
  std::shared_ptr<Conv> out_;
  at::Tensor pixels_;  // (K p p,K,p,p): which of a token's values are which of its pixels
};
CYTRA_REGISTER(Model, Cpsam, "CPSAM");

}  // namespace
}  // namespace cytra::nn
