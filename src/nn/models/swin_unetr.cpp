// SwinUNETR (arXiv:2201.01266), with use_v2 SwinUNETR-V2: a U-Net whose encoder is a Swin
// transformer. Arguments, parameter names and outputs follow monai.networks.nets.SwinUNETR.
#include <numeric>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/swin.h"
#include "nn/dropout.h"

namespace cytra::nn {
namespace {

constexpr std::size_t kStages = 4;

class SwinUNETR final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() { spatial_dims = 3; }
    int64_t patch_size = 2, feature_size = 24;
    Sizes depths{2, 2, 2, 2}, num_heads{3, 6, 12, 24}, window_size{7};
    double mlp_ratio = 4, drop_rate = 0, attn_drop_rate = 0, dropout_path_rate = 0;
    config::Node norm_name = config::Node::make_string("instance");
    bool qkv_bias = true, normalize = true, patch_norm = false, use_checkpoint = false,
         use_v2 = false;
    std::string downsample = "merging";
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("patch_size", patch_size, "sides of a patch, each a token", 2, 2);
      v("depths", depths, "transformer blocks of each of the 4 stages", 1, 1000);
      v("num_heads", num_heads, "heads of their attention", 1, 1e4);
      v("window_size",
        window_size,
        "sides of an attention window, in tokens; one number or one each");
      v("qkv_bias", qkv_bias, "biases of queries, keys and values");
      v("mlp_ratio", mlp_ratio, "features inside an MLP divided by those around it", 0.1, 100);
      v("feature_size",
        feature_size,
        "features of the finest level, doubled for each coarser",
        1,
        1e5);
      v("norm_name",
        norm_name,
        "of the convolutions: instance, batch, [group, {num_groups: 8}] ...");
      v("drop_rate", drop_rate, "share of values dropped in training", 0, 1);
      v("attn_drop_rate", attn_drop_rate, "likewise, of attention weights", 0, 1);
      v("dropout_path_rate",
        dropout_path_rate,
        "share of images that pass by the last block in training; by earlier ones, less",
        0,
        0.999);
      v("normalize", normalize, "norm of each stage's features before they become skips");
      v("patch_norm", patch_norm, "norm after the patch embedding");
      v("use_checkpoint", use_checkpoint, "MONAI's name of gradient_checkpointing");
      v("downsample", downsample, "order of neighbours in 3D", {"merging", "mergingv2"});
      v("use_v2", use_v2, "a block of convolutions before each stage");
    }
    void check() {
      window_size = per_dimension(window_size, spatial_dims, "SwinUNETR: window_size");
      if (depths.size() != kStages || num_heads.size() != kStages)
        throw ConfigError(
            "SwinUNETR: depths and num_heads: expected a number for each of 4 stages");
      for (std::size_t s = 0; s < kStages; ++s) {
        if ((feature_size << s) % num_heads[s] != 0) {
          throw ConfigError(
              "SwinUNETR: feature_size={}: {} features of stage {} are no multiple of its {} heads",
              feature_size,
              feature_size << s,
              s + 1,
              num_heads[s]);
        }
      }
      gradient_checkpointing = gradient_checkpointing || use_checkpoint;
    }
  };
  explicit SwinUNETR(const Options& options) : ImageModel(options), options_(options) {
    const int64_t features = options.feature_size;
    const Sizes two = options.each(2);
    UnetBlockOptions block{
        options.each(3), options.each(1), norm_options(options.norm_name), {"leakyrelu"}, 0, true};
    patches_ = put(*this,
                   "swinViT.patch_embed.proj",
                   patch_convolution(options.in_channels, features, two, options.each(0)));
    if (options.patch_norm)
      patch_norm_ = put<LayerNorm>(*this, "swinViT.patch_embed.norm", features);
    UnetBlockOptions v2_block = block;
    v2_block.norm = {"instance"};
    for (std::size_t s = 0; s < kStages; ++s) {
      const int64_t width = features << s;
      if (options.use_v2) {
        before_stages_.push_back(put<UnetBlock>(
            *this, fmt::format("swinViT.layers{}c.0.layer", s + 1), width, width, v2_block));
      }
      stages_.push_back(
          put<SwinStage>(*this, fmt::format("swinViT.layers{}.0", s + 1), width, stage_options(s)));
    }
    const auto encode = [&](const char* name, int64_t in, int64_t out) {
      skips_.push_back(put<UnetBlock>(*this, name, in, out, block));
    };
    encode("encoder1.layer", options.in_channels, features);
    encode("encoder2.layer", features, features);
    encode("encoder3.layer", 2 * features, 2 * features);
    encode("encoder4.layer", 4 * features, 4 * features);
    encode("encoder10.layer", 16 * features, 16 * features);
    for (int64_t level = 5; level > 0; --level) {
      const int64_t out = level == 1 ? features : features << (level - 2);
      decoder_.push_back(put<UnetUpBlock>(
          *this, fmt::format("decoder{}", level), features << (level - 1), out, two, false, block));
    }
    output_ = put<UnetOutBlock>(*this, "out", features, options.out_channels, block);
  }

  at::Tensor forward(const at::Tensor& image) override {
    at::Tensor x = call(*patches_, image);
    if (patch_norm_) x = call(*patch_norm_, x.movedim(1, -1)).movedim(-1, 1);
    x = nn::dropout(x, options_.drop_rate, is_training());
    std::vector<at::Tensor> features{normed(x)};
    for (std::size_t s = 0; s < kStages; ++s) {
      if (options_.use_v2) x = run(before_stages_[s], laid_out(x));
      x = call(*stages_[s], x, settings.gradient_checkpointing);
      features.push_back(normed(x));
    }
    const std::vector<at::Tensor> skips{run(skips_[0], image),
                                        run(skips_[1], features[0]),
                                        run(skips_[2], features[1]),
                                        run(skips_[3], features[2]),
                                        features[3]};
    x = run(skips_[4], features[4]);
    for (std::size_t i = 0; i < decoder_.size(); ++i)
      x = run(decoder_[i], x, skips[skips.size() - 1 - i]);
    return call(*output_, x);
  }
  std::vector<int64_t> divisor() const override { return options_.each(32); }

 private:
  SwinOptions stage_options(std::size_t stage) const {
    const Sizes& depths = options_.depths;
    const auto before = std::accumulate(
        depths.begin(), depths.begin() + static_cast<std::ptrdiff_t>(stage), int64_t{0});
    const auto all = std::accumulate(depths.begin(), depths.end(), int64_t{0});
    SwinOptions stage_options{options_.window_size,
                              options_.num_heads[stage],
                              options_.mlp_ratio,
                              options_.qkv_bias,
                              options_.drop_rate,
                              options_.attn_drop_rate};
    for (int64_t i = before; i < before + depths[stage]; ++i) {
      stage_options.path_drop.push_back(all == 1
                                            ? 0
                                            : options_.dropout_path_rate * static_cast<double>(i) /
                                                  static_cast<double>(all - 1));
    }
    stage_options.merging = options_.downsample;
    return stage_options;
  }
  /// The norm over channels, without a map of its own.
  at::Tensor normed(const at::Tensor& x) const {
    if (!options_.normalize) return laid_out(x);
    const at::Tensor last = x.movedim(1, -1);
    return laid_out(at::layer_norm(last, {last.size(-1)}).movedim(-1, 1));
  }
  /// The tensor in the model's memory format: inside the stages, channels come last.
  at::Tensor laid_out(const at::Tensor& x) const { return channels_last ? x : x.contiguous(); }

  Options options_;
  std::shared_ptr<Conv> patches_;
  std::shared_ptr<LayerNorm> patch_norm_;
  std::vector<std::shared_ptr<UnetBlock>> before_stages_, skips_;
  std::vector<std::shared_ptr<SwinStage>> stages_;
  std::vector<std::shared_ptr<UnetUpBlock>> decoder_;
  std::shared_ptr<UnetOutBlock> output_;
};
CYTRA_REGISTER(Model, SwinUNETR, "SwinUNETR");

}  // namespace
}  // namespace cytra::nn
