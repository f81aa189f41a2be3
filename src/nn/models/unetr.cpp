// UNETR (arXiv:2103.10504): a Vision Transformer whose tokens, after some of its blocks, are the
// skips of a U-Net. Arguments, parameter names and outputs follow monai.networks.nets.UNETR.
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/vit.h"

namespace cytra::nn {
namespace {

constexpr int64_t kUnetrPatch = 16, kUnetrLayers = 12;

/// Doubles the sides of a token map again and again, with a block after each further time.
/// monai.networks.blocks.UnetrPrUpBlock.
struct TokenUpsampling final : Layer {
  TokenUpsampling(int64_t in,
                  int64_t out,
                  std::size_t further,
                  bool has_blocks,
                  const UnetBlockOptions& options) {
    const auto up = [&](int64_t from) {
      const Sizes two(options.kernel.size(), 2);
      return unet_conv(from, out, {two, two, false, true}, 0);
    };
    steps_.push_back(put(*this, "transp_conv_init", up(in)));
    for (std::size_t i = 0; i < further; ++i) {
      const std::string name = fmt::format("blocks.{}", i);
      steps_.push_back(put(*this, has_blocks ? name + ".0" : name, up(out)));
      if (has_blocks) steps_.push_back(put<UnetBlock>(*this, name + ".1", out, out, options));
    }
  }
  at::Tensor forward(const at::Tensor& tokens) override {
    at::Tensor x = tokens;
    for (const auto& step : steps_) x = call(*step, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Layer>> steps_;
};

class UNETR final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, VitOptions {
    int64_t out_channels = 1, feature_size = 16;
    config::Node norm_name = config::Node::make_string("instance");
    bool conv_block = true, res_block = true;
    void visit(auto& v) {
      VitOptions::visit(v);
      v("out_channels", out_channels, "logits K", 1, 1e5);
      v("feature_size",
        feature_size,
        "features of the finest level, doubled for each coarser",
        1,
        1e5);
      v("norm_name", norm_name, "instance, batch, [group, {num_groups: 8}] ...");
      v("conv_block", conv_block, "convolutions between the upsamplings of skips");
      v("res_block", res_block, "residual blocks");
      ModelOptions::visit(v);
    }
    void check() {
      VitOptions::check();
      for (const int64_t side : img_size) {
        if (side % kUnetrPatch != 0)
          throw ConfigError("UNETR: img_size: {} is no multiple of {}", side, kUnetrPatch);
      }
    }
  };
  explicit UNETR(const Options& options)
      : FixedSizeModel(options, options.img_size, options.in_channels, options.out_channels),
        options_(options),
        vit_(put<Module>(*this, "vit")),
        encoder_(*vit_,
                 options,
                 Sizes(options.img_size.size(), kUnetrPatch),
                 kUnetrLayers,
                 "learnable") {
    const Sizes three(options.img_size.size(), 3), one(three.size(), 1), two(three.size(), 2);
    const UnetBlockOptions block{
        three, one, norm_options(options.norm_name), {"leakyrelu"}, 0, options.res_block};
    const int64_t features = options.feature_size;
    skips_.push_back(put<UnetBlock>(*this, "encoder1.layer", options.in_channels, features, block));
    for (const std::size_t further : {2, 1, 0}) {
      const int64_t out = features << (3 - further);
      skips_.push_back(put<TokenUpsampling>(*this,
                                            fmt::format("encoder{}", 4 - further),
                                            options.hidden_size,
                                            out,
                                            further,
                                            options.conv_block,
                                            block));
    }
    for (int64_t level = 5; level > 1; --level) {
      const int64_t in = level == 5 ? options.hidden_size : features << (level - 1);
      decoder_.push_back(put<UnetUpBlock>(
          *this, fmt::format("decoder{}", level), in, features << (level - 2), two, false, block));
    }
    output_ = put<UnetOutBlock>(*this, "out", features, options.out_channels, block);
  }

  at::Tensor forward(const at::Tensor& image) override {
    const std::vector<at::Tensor> states =
        encoder_.forward(image, {}, settings.gradient_checkpointing);
    std::vector<at::Tensor> skips{run(skips_[0], image)};
    for (std::size_t i = 1; i < skips_.size(); ++i)
      skips.push_back(run(skips_[i], map_of(states[3 * i + 1])));
    at::Tensor x = map_of(states[0]);
    for (const auto& block : decoder_) {
      x = run(block, x, skips.back());
      skips.pop_back();
    }
    return call(*output_, x);
  }
  std::vector<int64_t> divisor() const override {
    return Sizes(options_.img_size.size(), kUnetrPatch);
  }

 private:
  /// Tokens (N,T,E) -> (N,E,[d,]h,w)
  at::Tensor map_of(const at::Tensor& tokens) const {
    Sizes grid;
    for (const int64_t side : options_.img_size) grid.push_back(side / kUnetrPatch);
    const at::Tensor map = tokens.transpose(1, 2).unflatten(2, grid);
    return channels_last ? map : map.contiguous();
  }
  Options options_;
  std::shared_ptr<Module> vit_;
  VitEncoder encoder_;
  std::vector<std::shared_ptr<Layer>> skips_;
  std::vector<std::shared_ptr<UnetUpBlock>> decoder_;
  std::shared_ptr<UnetOutBlock> output_;
};
CYTRA_REGISTER(Model, UNETR, "UNETR");

}  // namespace
}  // namespace cytra::nn
