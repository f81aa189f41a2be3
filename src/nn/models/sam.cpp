// Segment Anything with a Vision Transformer (arXiv:2304.02643). Parameter names and outputs are
// those of segment_anything.modeling.Sam, arguments those of its parts; the defaults are vit_b's.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/sam_decoder.h"
#include "ops/tokens/tokens.h"

namespace cytra::nn {
namespace {

class Sam final : public PromptableModel {
 public:
  struct Options : ModelOptions, SamEncoderOptions, SamDecoderOptions {
    static constexpr const char* kPurpose =
        "masks of boxes; expected task=promptable (experiment=promptable/cells)";
    bool dense_boxes = false;
    std::vector<double> pixel_mean = kSamPixels.mean, pixel_std = kSamPixels.std;
    void visit(auto& v) {
      SamEncoderOptions::visit(v);
      SamDecoderOptions::visit(v);
      v("dense_boxes",
        dense_boxes,
        "a box is also given as a mask: so a network learns in minutes what a box is; Meta's "
        "networks have not learned it");
      v("pixel_mean",
        pixel_mean,
        "means of bytes in red, green and blue; []: each image's own, so that pixels may have any "
        "type",
        -1e6,
        1e6);
      v("pixel_std", pixel_std, "their deviations; []: each image's own", 1e-6, 1e6);
      ModelOptions::visit(v);
    }
    void check() const {
      SamEncoderOptions::check();
      SamDecoderOptions::check(out_chans);
      if (pixel_mean.size() != pixel_std.size() || (!pixel_mean.empty() && pixel_mean.size() != 3))
        throw ConfigError(
            "Sam: pixel_mean has {} numbers and pixel_std {}, expected 3 in both, or none in both",
            pixel_mean.size(),
            pixel_std.size());
    }
  };
  explicit Sam(const Options& options)
      : PromptableModel(options),
        options_(options),
        encoder_(put<SamEncoder>(*this, "image_encoder", options)),
        prompts_(put<SamPromptEncoder>(*this,
                                       "prompt_encoder",
                                       options.out_chans,
                                       options.img_size / options.patch_size,
                                       options.img_size,
                                       options)),
        decoder_(put<SamMaskDecoder>(*this, "mask_decoder", options.out_chans, options)) {}

  at::Tensor encode(const at::Tensor& images) override {
    return call(*encoder_, images, settings.gradient_checkpointing);
  }
  PromptedMasks decode(const at::Tensor& embeddings, const Prompts& prompts, bool all) override {
    Prompts given = prompts;
    if (options_.dense_boxes && prompts.boxes.defined() && !prompts.masks.defined())
      given.masks = mask_of_boxes(prompts.boxes);
    const at::Tensor grid = prompts_->grid(), sparse = prompts_->sparse(given);
    const bool is_fused = ops::has_token_kernels(embeddings) && watcher == nullptr &&
                          embeddings.sizes().slice(1) == grid.sizes().slice(1);
    return is_fused ? decoder_->forward_fused(prompts_->embed(embeddings, given), grid, sparse, all)
                    : decoder_->forward(embeddings, grid, sparse, prompts_->dense(given), all);
  }
  PixelScale pixels() const override { return {options_.pixel_mean, options_.pixel_std}; }

  at::Tensor forward(const at::Tensor& image) override { return encode(image); }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    const at::Tensor embeddings = encode(image);
    const auto size = static_cast<double>(options_.img_size);
    const at::Tensor box = at::tensor({0.0, 0.0, size, size}, at::kFloat);
    const PromptedMasks masks =
        decode(embeddings, {box.to(image.device()).expand({image.size(0), 4})}, true);
    return {embeddings, masks.logits, masks.quality};
  }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  std::vector<int64_t> fixed_size() const override {
    return {options_.img_size, options_.img_size};
  }
  int64_t in_channels() const override { return 3; }
  int64_t out_channels() const override { return options_.out_chans; }
  int64_t spatial_dims() const override { return 2; }

 private:
  /// (B,4) -> (B,1,4s,4s): 1 inside, -1 outside, between them where a border crosses a pixel.
  at::Tensor mask_of_boxes(const at::Tensor& boxes) const {
    const int64_t length = 4 * (options_.img_size / options_.patch_size);
    const at::Tensor scaled = boxes.to(at::kFloat) * (static_cast<double>(length) /
                                                      static_cast<double>(options_.img_size));
    const at::Tensor begin = at::arange(length, scaled.options());
    const auto covered = [&](int64_t axis) {  // (B,length): the share of each pixel
      const at::Tensor low = at::maximum(begin, scaled.slice(1, axis, axis + 1));
      const at::Tensor high = at::minimum(begin + 1, scaled.slice(1, axis + 2, axis + 3));
      return (high - low).clamp(0, 1);
    };
    return (covered(1).unsqueeze(2) * covered(0).unsqueeze(1) * 2 - 1).unsqueeze(1);
  }
  Options options_;
  std::shared_ptr<SamEncoder> encoder_;
  std::shared_ptr<SamPromptEncoder> prompts_;
  std::shared_ptr<SamMaskDecoder> decoder_;
};
CYTRA_REGISTER(Model, Sam, "Sam");

}  // namespace
}  // namespace cytra::nn
