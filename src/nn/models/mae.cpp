// MAE (arXiv:2111.06377): a transformer that sees some patches of an image and reconstructs the
// others. Arguments, parameter names and outputs follow cyto_dl.nn.vits.MAE.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/masked_autoencoder.h"

namespace cytra::nn {
namespace {

class MAE final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, MaeOptions, MaeDecoderOptions {
    int64_t emb_dim = 768, encoder_layer = 12, encoder_head = 8;
    double mask_ratio = 0.75;
    bool learnable_pos_embedding = true;
    void visit(auto& v) {
      MaeOptions::visit(v);
      v("emb_dim", emb_dim, "features of a token in the encoder", 1, 1e5);
      v("encoder_layer", encoder_layer, "transformer blocks of the encoder", 1, 1000);
      v("encoder_head", encoder_head, "heads of its attention; they share emb_dim", 1, 1e4);
      MaeDecoderOptions::visit(v);
      v("mask_ratio", mask_ratio, "share of patches that are hidden", 0, 1);
      v("learnable_pos_embedding",
        learnable_pos_embedding,
        "the decoder learns what tells a token its place; false: sines and cosines");
      ModelOptions::visit(v);
    }
    void check() {
      MaeOptions::check();
      MaeDecoderOptions::check();
      const int64_t patches = product(*num_patches);
      const int64_t visible = UnitMask::draw(1, patches, mask_ratio, false, at::kCPU).visible;
      if (visible < 1 || visible + 1 >= patches) {
        throw ConfigError(
            "mask_ratio={}: {} of {} patches are visible, expected at least one of each",
            mask_ratio,
            visible,
            patches);
      }
    }
  };
  explicit MAE(const Options& options)
      : FixedSizeModel(options, *options.img_size, options.input_channels, options.input_channels),
        options_(options),
        encoder_(put<MaeEncoder>(*this,
                                 "_encoder",
                                 options,
                                 options.emb_dim,
                                 options.encoder_layer,
                                 options.encoder_head,
                                 options.use_crossmae ? options.decoder_layer : 0)),
        decoder_(put<MaeDecoder>(*this,
                                 "_decoder",
                                 options,
                                 *options.num_patches,
                                 options.patch_size,
                                 options.emb_dim,
                                 options.input_channels,
                                 options.use_crossmae,
                                 options.learnable_pos_embedding)) {}

  /// (N,C,[D,]H,W) -> the reconstruction
  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  /// The reconstruction, and the mask (N,1,[D,]H,W): 1 for what was hidden. In evaluation the mask
  /// is always the same, and visible patches are copied from the image.
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    const Sizes& grid = *options_.num_patches;
    const UnitMask mask = UnitMask::draw(
        image.size(0), product(grid), options_.mask_ratio, is_training(), image.device());
    const bool recompute = settings.gradient_checkpointing;
    at::Tensor tokens = call(*encoder_, image, &mask, recompute);
    if (tokens.dim() == 4) tokens = tokens[0];  // as the original: its decoder takes the first sum
    const at::Tensor made = call(*decoder_, tokens, mask, recompute);
    const at::Tensor hidden = mask.hidden(grid, options_.patch_size);
    return {is_training() ? made : at::where(hidden, made, image),
            hidden.to(made.scalar_type()).expand_as(made.narrow(1, 0, 1))};
  }

 private:
  Options options_;
  std::shared_ptr<MaeEncoder> encoder_;
  std::shared_ptr<MaeDecoder> decoder_;
};
CYTRA_REGISTER(Model, MAE, "MAE");

}  // namespace
}  // namespace cytra::nn
