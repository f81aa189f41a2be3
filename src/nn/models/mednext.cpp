// MedNeXt: a U-Net of depthwise convolutions of a large side with inverted bottlenecks.
// Architecture, arguments and parameter names follow monai.networks.nets.MedNeXt; arXiv:2303.09975.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {
namespace {

struct MedNeXtStyle {
  int64_t spatial_dims, kernel;
  bool residual, response_norm;
};

enum class Resampling { none, down, up };

/// Depthwise convolution, norm, `expansion` times the channels with a GELU, and back; halves or
/// doubles the sides on the way.
struct MedNeXtBlock final : Layer {
  MedNeXtBlock(int64_t in,
               int64_t out,
               int64_t expansion,
               const MedNeXtStyle& style,
               Resampling resampling = Resampling::none)
      : residual_(style.residual), resampling_(resampling) {
    const auto dims = static_cast<std::size_t>(style.spatial_dims);
    const Sizes one(dims, 1), none(dims, 0);
    ConvOptions resample{one, Sizes(dims, resampling == Resampling::none ? 1 : 2)};
    if (resampling == Resampling::up) {
      resample.transposed = true;
      resample.output_padding = none;  // a row of zeros in front instead, see forward()
    }
    ConvOptions depthwise = resample;
    depthwise.kernel.assign(dims, style.kernel);
    depthwise.groups = in;
    NormOptions norm;  // MONAI's group norm, with as many groups as channels
    norm.kind = "instance";
    norm.affine = true;
    const int64_t wide = expansion * in;
    conv1_ = put<Conv>(*this, "conv1", in, in, depthwise);
    norm_ = put<Norm>(*this, "norm", norm, in);
    conv2_ = put<Conv>(*this, "conv2", in, wide, ConvOptions{one, one});
    conv3_ = put<Conv>(*this, "conv3", wide, out, ConvOptions{one, one});
    if (residual_ && resampling != Resampling::none)
      res_conv_ = put<Conv>(*this, "res_conv", in, out, resample);
    if (style.response_norm && resampling != Resampling::down) {
      Sizes shape{1, wide};
      shape.resize(dims + 2, 1);
      beta_ = register_parameter("global_resp_beta", at::zeros(shape));
      gamma_ = register_parameter("global_resp_gamma", at::zeros(shape));
    }
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor y = at::gelu(call(*conv2_, call(*norm_, call(*conv1_, x))));
    if (beta_.defined()) {  // arXiv:2301.00808: channels compete by their norms
      Sizes sides;
      for (int64_t d = 2; d < y.dim(); ++d) sides.push_back(d);
      const at::Tensor norms = at::linalg_vector_norm(y, 2, sides, true);
      y = gamma_ * (y * (norms / (norms.mean(1, true) + 1e-6))) + beta_ + y;
    }
    y = call(*conv3_, y);
    if (residual_) y.add_(res_conv_ ? call(*res_conv_, x) : x);
    if (resampling_ != Resampling::up) return y;
    Sizes front;
    for (int64_t d = 2; d < y.dim(); ++d) front.insert(front.end(), {1, 0});
    return at::constant_pad_nd(y, front);
  }

 private:
  bool residual_;
  Resampling resampling_;
  std::shared_ptr<Conv> conv1_, conv2_, conv3_, res_conv_;
  std::shared_ptr<Norm> norm_;
  at::Tensor beta_, gamma_;
};

class MedNeXt final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() {
      spatial_dims = 3;
      out_channels = 2;
    }
    int64_t init_filters = 32, bottleneck_expansion_ratio = 2, kernel_size = 7,
            blocks_bottleneck = 2;
    Sizes encoder_expansion_ratio{2}, decoder_expansion_ratio{2}, blocks_down{2, 2, 2, 2},
        blocks_up{2, 2, 2, 2};
    bool deep_supervision = false, use_residual_connection = false, global_resp_norm = false;
    std::string norm_type = "group";
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("init_filters",
        init_filters,
        "features of the finest level; each below has twice as many",
        1,
        1e4);
      v("encoder_expansion_ratio", encoder_expansion_ratio, "one number, or one per level", 1, 64);
      v("decoder_expansion_ratio", decoder_expansion_ratio, "likewise, from below", 1, 64);
      v("bottleneck_expansion_ratio", bottleneck_expansion_ratio, "of the coarsest level", 1, 64);
      v("kernel_size", kernel_size, "side of the depthwise convolutions: odd", 1, 99);
      v("deep_supervision", deep_supervision, "outputs of every coarser level, too, in training");
      v("use_residual_connection", use_residual_connection, "add each block's input");
      v("blocks_down", blocks_down, "blocks of the encoder, per level", 0, 100);
      v("blocks_bottleneck", blocks_bottleneck, "of the coarsest level", 0, 100);
      v("blocks_up", blocks_up, "blocks of the decoder, per level from below", 0, 100);
      v("norm_type", norm_type, "as many groups as channels", {"group"});
      v("global_resp_norm", global_resp_norm, "channels compete by their norms");
    }
    void check() {
      const std::size_t levels = blocks_down.size();
      for (Sizes* ratio : {&encoder_expansion_ratio, &decoder_expansion_ratio}) {
        if (ratio->size() == 1) ratio->resize(levels, ratio->front());
        if (ratio->size() != levels || blocks_up.size() != levels || levels == 0) {
          throw ConfigError(
              "MedNeXt: blocks_up and the expansion ratios need as many entries as blocks_down");
        }
      }
      odd_per_dimension({kernel_size}, spatial_dims, "MedNeXt: kernel_size");
    }
  };

  explicit MedNeXt(const Options& options) : ImageModel(options), options_(options) {
    const MedNeXtStyle style{options.spatial_dims,
                             options.kernel_size,
                             options.use_residual_connection,
                             options.global_resp_norm};
    const std::size_t levels = options.blocks_down.size();
    const auto features = [&](std::size_t level) { return options.init_filters << level; };
    const auto blocks = [&](std::size_t level, int64_t expansion, int64_t count) {
      return repeated<MedNeXtBlock>(count, features(level), features(level), expansion, style);
    };
    const ConvOptions one{options.each(1), options.each(1)};
    stem_ = put<Conv>(*this, "stem", options.in_channels, options.init_filters, one);
    for (std::size_t level = 0; level < levels; ++level) {
      const int64_t expansion = options.encoder_expansion_ratio[level];
      stages_.push_back(put(*this,
                            fmt::format("enc_stages.{}", level),
                            blocks(level, expansion, options.blocks_down[level])));
      down_.push_back(put<MedNeXtBlock>(*this,
                                        fmt::format("down_blocks.{}", level),
                                        features(level),
                                        features(level + 1),
                                        expansion,
                                        style,
                                        Resampling::down));
    }
    bottleneck_ = register_module(
        "bottleneck",
        blocks(levels, options.bottleneck_expansion_ratio, options.blocks_bottleneck));
    for (std::size_t i = 0; i < levels; ++i) {
      const std::size_t level = levels - 1 - i;
      const int64_t expansion = options.decoder_expansion_ratio[i];
      up_.push_back(put<MedNeXtBlock>(*this,
                                      fmt::format("up_blocks.{}", i),
                                      features(level + 1),
                                      features(level),
                                      expansion,
                                      style,
                                      Resampling::up));
      decoder_.push_back(put(
          *this, fmt::format("dec_stages.{}", i), blocks(level, expansion, options.blocks_up[i])));
    }
    const std::size_t coarser = options.deep_supervision ? levels : 0;
    ConvOptions out = one;
    out.transposed = true;
    for (std::size_t level = 0; level <= coarser; ++level) {
      const std::string name = level == 0 ? "out_0" : fmt::format("out_blocks.{}", levels - level);
      heads_.push_back(
          put<Conv>(*this, name + ".conv_out", features(level), options.out_channels, out));
    }
  }

  at::Tensor forward(const at::Tensor& image) override { return outputs(image, 1)[0]; }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    return outputs(image, is_training() ? heads_.size() : 1);
  }
  std::vector<int64_t> divisor() const override {
    return options_.each(int64_t{1} << down_.size());
  }

 private:
  /// The outputs of the finest `count` levels, the finest first.
  std::vector<at::Tensor> outputs(const at::Tensor& image, std::size_t count) {
    std::vector<at::Tensor> skips, found(count);
    at::Tensor x = call(*stem_, image);
    for (std::size_t level = 0; level < down_.size(); ++level) {
      skips.push_back(run(stages_[level], x));
      x = run(down_[level], skips.back());
    }
    x = run(bottleneck_, x);
    if (down_.size() < count) found[down_.size()] = call(*heads_[down_.size()], x);
    for (std::size_t i = 0; i < up_.size(); ++i) {
      const std::size_t level = up_.size() - 1 - i;
      x = run(decoder_[i], run(up_[i], x) + skips[level]);
      if (level < count) found[level] = call(*heads_[level], x);
    }
    return found;
  }

  Options options_;
  std::shared_ptr<Conv> stem_;
  std::vector<std::shared_ptr<Sequence>> stages_, decoder_;
  std::vector<std::shared_ptr<MedNeXtBlock>> down_, up_;
  std::shared_ptr<Sequence> bottleneck_;
  std::vector<std::shared_ptr<Conv>> heads_;  // of the finest level first
};
CYTRA_REGISTER(Model, MedNeXt, "MedNeXt", "MedNext");

}  // namespace
}  // namespace cytra::nn
