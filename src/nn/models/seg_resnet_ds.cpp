// SegResNetDS: SegResNet with deep supervision, for pixels that are longer in one direction, too.
// Architecture, arguments and parameter names follow monai.networks.nets.SegResNetDS.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/convolution.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

/// Norm, activation, convolution, twice, and the input.
struct SegResBlock final : Sequence {
  SegResBlock(int64_t channels,
              const ConvOptions& conv,
              const NormOptions& norm,
              const ActivationOptions& act) {
    for (const std::string number : {"1", "2"}) {
      add("norm" + number, std::make_shared<Norm>(norm, channels));
      add("act" + number, std::make_shared<Activation>(act));
      add("conv" + number, std::make_shared<Conv>(channels, channels, conv));
    }
  }
  at::Tensor forward(const at::Tensor& x) override { return Sequence::forward(x).add_(x); }
};

class SegResNetDS final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() {
      spatial_dims = 3;
      out_channels = 2;
    }
    int64_t init_filters = 32, dsdepth = 1;
    config::Node act = config::Node::make_string("relu"), norm = config::Node::make_string("batch");
    Sizes blocks_down{1, 2, 2, 4};
    std::optional<Sizes> blocks_up;
    std::string upsample_mode = "deconv";
    std::optional<std::vector<double>> resolution;
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("init_filters",
        init_filters,
        "features of the finest level; each below has twice as many",
        1,
        1e4);
      v("act", act, "relu, prelu, [leakyrelu, {negative_slope: 0.1}] ...");
      v("norm", norm, "batch, instance, [group, {num_groups: 8}] ...");
      v("blocks_down", blocks_down, "residual blocks of the encoder, per level", 1, 100);
      v("blocks_up",
        blocks_up,
        "of the decoder, per level from below: one entry less; null: 1 each");
      v("dsdepth", dsdepth, "outputs in training: of so many levels, the finest first", 1, 100);
      v("upsample_mode", upsample_mode, "how sides are doubled", kUpSampleModes);
      v("resolution",
        resolution,
        "size of a pixel, per dimension: directions in which it is long are halved later; null: "
        "alike");
    }
    void check() {
      if (!blocks_up) blocks_up = Sizes(blocks_down.size() - 1, 1);
      if (blocks_down.size() < 2 || blocks_up->size() + 1 != blocks_down.size()) {
        throw ConfigError(
            "SegResNetDS: blocks_down needs two levels or more, and blocks_up one entry less; got "
            "{} and {}",
            blocks_down.size(),
            blocks_up->size());
      }
      if (resolution && (std::ssize(*resolution) != spatial_dims ||
                         *std::ranges::min_element(*resolution) <= 0)) {
        throw ConfigError("SegResNetDS: resolution takes {} positive numbers, one per dimension",
                          spatial_dims);
      }
    }
    /// Strides from each level to the next: 2, but 1 in a direction whose pixels are still long.
    std::vector<Sizes> scales() const {
      std::vector<Sizes> scales(blocks_down.size(), each(2));
      if (!resolution) return scales;
      const double longest = *std::ranges::max_element(*resolution);
      double most = 0;  // halvings until all directions are alike
      for (const double side : *resolution)
        most = std::max(most, std::floor(std::log2(longest / side)));
      for (std::size_t level = 0; level < scales.size() && static_cast<double>(level) < most;
           ++level) {
        for (std::size_t d = 0; d < scales[level].size(); ++d) {
          if (static_cast<double>(level) >= std::floor(std::log2(longest / (*resolution)[d])))
            scales[level][d] = 1;
        }
      }
      return scales;
    }
  };

  explicit SegResNetDS(const Options& options) : ImageModel(options), strides_(options.scales()) {
    NormOptions norm = norm_options(options.norm);
    norm.affine = norm.affine.value_or(true);
    const ActivationOptions act = activation_options(options.act);
    const std::size_t ups = options.blocks_up->size();
    const auto kernel = [&](std::size_t level) {
      if (!options.resolution) return options.each(3);
      Sizes sides;
      for (const int64_t scale : strides_[level]) sides.push_back(scale > 1 ? 3 : 1);
      return sides;
    };
    const auto blocks = [&](std::size_t level, int64_t count) {
      const ConvOptions conv{kernel(level), options.each(1), false};
      return repeated<SegResBlock>(count, options.init_filters << level, conv, norm, act);
    };
    first_ = put<Conv>(*this,
                       "encoder.conv_init",
                       options.in_channels,
                       options.init_filters,
                       ConvOptions{kernel(0), options.each(1), false});
    for (std::size_t level = 0; level <= ups; ++level) {
      const std::string name = fmt::format("encoder.layers.{}.", level);
      encoder_.push_back(put(*this, name + "blocks", blocks(level, options.blocks_down[level])));
      if (level == ups) continue;
      const int64_t channels = options.init_filters << level;
      downsamples_.push_back(put<Conv>(*this,
                                       name + "downsample",
                                       channels,
                                       2 * channels,
                                       ConvOptions{kernel(level), strides_[level], false}));
    }
    for (std::size_t i = 0; i < ups; ++i) {
      const std::size_t level = ups - 1 - i;
      const int64_t channels = options.init_filters << level;
      const std::string name = fmt::format("up_layers.{}.", i);
      upsamples_.push_back(put<UpSample>(
          *this,
          name + "upsample",
          2 * channels,
          channels,
          UpSampleOptions{options.upsample_mode, strides_[level], kernel(level), false, false}));
      decoder_.push_back(put(*this, name + "blocks", blocks(level, (*options.blocks_up)[i])));
      if (static_cast<int64_t>(level) >= options.dsdepth) continue;
      heads_.insert(heads_.begin(),
                    put<Conv>(*this,
                              name + "head",
                              channels,
                              options.out_channels,
                              ConvOptions{options.each(1), options.each(1)}));
    }
    strides_.pop_back();  // below the coarsest level there is nothing
  }

  at::Tensor forward(const at::Tensor& image) override { return outputs(image, 1)[0]; }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    return outputs(image, is_training() ? heads_.size() : 1);
  }
  std::vector<int64_t> divisor() const override { return product_of(strides_); }

 private:
  /// The outputs of the finest `count` levels, the finest first.
  std::vector<at::Tensor> outputs(const at::Tensor& image, std::size_t count) {
    std::vector<at::Tensor> skips, found(count);
    at::Tensor x = call(*first_, image);
    for (std::size_t level = 0; level < encoder_.size(); ++level) {
      skips.push_back(x = run(encoder_[level], x));
      if (level < downsamples_.size()) x = call(*downsamples_[level], x);
    }
    for (std::size_t i = 0; i < decoder_.size(); ++i) {
      const std::size_t level = decoder_.size() - 1 - i;
      x = run(decoder_[i], run(upsamples_[i], x) + skips[level]);
      if (level < count) found[level] = call(*heads_[level], x);
    }
    return found;
  }

  std::vector<Sizes> strides_;
  std::shared_ptr<Conv> first_;
  std::vector<std::shared_ptr<Sequence>> encoder_, decoder_;
  std::vector<std::shared_ptr<Conv>> downsamples_, heads_;  // heads: of the finest level first
  std::vector<std::shared_ptr<UpSample>> upsamples_;
};
CYTRA_REGISTER(Model, SegResNetDS, "SegResNetDS");

}  // namespace
}  // namespace cytra::nn
