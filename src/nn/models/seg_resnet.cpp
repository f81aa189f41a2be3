// SegResNet: a residual encoder and a small decoder that adds its skips. Architecture, arguments
// and parameter names follow monai.networks.nets.SegResNet; arXiv:1810.11654 without its
// autoencoder.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/convolution.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

/// Norm, activation, convolution, twice, and the input.
struct PreActivatedBlock final : Layer {
  PreActivatedBlock(int64_t channels,
                    const ConvOptions& conv,
                    const NormOptions& norm,
                    const ActivationOptions& act)
      : norm1_(put<Norm>(*this, "norm1", norm, channels)),
        norm2_(put<Norm>(*this, "norm2", norm, channels)),
        act_(put<Activation>(*this, "act", act)),
        conv1_(put<Convolution>(*this, "conv1", channels, channels, conv)),
        conv2_(put<Convolution>(*this, "conv2", channels, channels, conv)) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = call(*conv1_, norm_act(*norm1_, *act_, x));
    return call(*conv2_, norm_act(*norm2_, *act_, y)).add_(x);
  }

 private:
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<Activation> act_;
  std::shared_ptr<Convolution> conv1_, conv2_;
};

class SegResNet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() {
      spatial_dims = 3;
      out_channels = 2;
    }
    int64_t init_filters = 8;
    std::optional<double> dropout_prob;
    config::Node act = config::Node::make_string("relu"),
                 norm = config::parse_yaml("[group, {num_groups: 8}]", "default");
    bool use_conv_final = true;
    Sizes blocks_down{1, 2, 2, 4}, blocks_up{1, 1, 1};
    std::string upsample_mode = "nontrainable";
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("init_filters",
        init_filters,
        "features of the finest level; each below has twice as many",
        1,
        1e4);
      v("dropout_prob",
        dropout_prob,
        "share of channels dropped after the first convolution",
        0,
        1);
      v("act", act, "relu, prelu, [leakyrelu, {negative_slope: 0.1}] ...");
      v("norm", norm, "[group, {num_groups: 8}], [instance, {affine: true}], batch ...");
      v("use_conv_final", use_conv_final, "false: the features before the last convolution");
      v("blocks_down", blocks_down, "residual blocks of the encoder, per level", 1, 100);
      v("blocks_up", blocks_up, "of the decoder, per level from below: one entry less", 1, 100);
      v("upsample_mode", upsample_mode, "how sides are doubled", kUpSampleModes);
    }
    void check() const {
      if (blocks_up.size() + 1 != blocks_down.size()) {
        throw ConfigError(
            "SegResNet: blocks_up needs one entry less than blocks_down; got {} and {}",
            blocks_up.size(),
            blocks_down.size());
      }
    }
  };

  explicit SegResNet(const Options& options) : ImageModel(options), options_(options) {
    const NormOptions norm = norm_options(options.norm);
    const ActivationOptions act = activation_options(options.act);
    const ConvOptions same{options.each(3), options.each(1), false};
    const ConvOptions down{options.each(3), options.each(2), false};
    const ConvOptions one{options.each(1), options.each(1), false};
    const int64_t filters = options.init_filters;
    const auto blocks = [&](int64_t channels, int64_t count) {
      std::vector<std::shared_ptr<Layer>> made;
      for (int64_t i = 0; i < count; ++i)
        made.push_back(std::make_shared<PreActivatedBlock>(channels, same, norm, act));
      return made;
    };
    const auto keep = [&](auto& list, const std::string& name, std::shared_ptr<Layer> layer) {
      list.push_back(put(*this, name, std::move(layer)));
    };
    first_ = put<Convolution>(*this, "convInit", options.in_channels, filters, same);
    if (options.dropout_prob)
      dropout_ = put<Dropout>(*this, "dropout", *options.dropout_prob, true);
    const std::size_t ups = options.blocks_up.size();
    for (std::size_t level = 0; level <= ups; ++level) {
      const int64_t channels = filters << level;
      auto layers = blocks(channels, options.blocks_down[level]);
      layers.insert(layers.begin(),
                    level == 0 ? std::make_shared<Sequence>()
                               : std::static_pointer_cast<Sequence>(
                                     std::make_shared<Convolution>(channels / 2, channels, down)));
      keep(down_, fmt::format("down_layers.{}", level), std::make_shared<Sequence>(layers));
    }
    for (std::size_t i = 0; i < ups; ++i) {
      const int64_t channels = filters << (ups - i - 1);
      keep(upsamples_,
           fmt::format("up_samples.{}", i),
           std::make_shared<Sequence>(std::vector<std::shared_ptr<Layer>>{
               std::make_shared<Convolution>(2 * channels, channels, one),
               std::make_shared<UpSample>(
                   channels,
                   channels,
                   UpSampleOptions{options.upsample_mode, options.each(2), {}, true, false})}));
      keep(up_,
           fmt::format("up_layers.{}", i),
           std::make_shared<Sequence>(blocks(channels, options.blocks_up[i])));
    }
    final_ =
        put<Sequence>(*this,
                      "conv_final",
                      std::vector<std::shared_ptr<Layer>>{
                          std::make_shared<Norm>(norm, filters),
                          std::make_shared<Activation>(act),
                          std::make_shared<Convolution>(
                              filters, options.out_channels, ConvOptions{one.kernel, one.stride})});
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = run(first_, image);
    if (dropout_) x = call(*dropout_, x);
    for (const auto& level : down_) skips.push_back(x = run(level, x));
    for (std::size_t i = 0; i < up_.size(); ++i)
      x = run(up_[i], run(upsamples_[i], x) + skips[up_.size() - 1 - i]);
    return options_.use_conv_final ? run(final_, x) : x;
  }
  std::vector<int64_t> divisor() const override { return options_.each(int64_t{1} << up_.size()); }
  int64_t out_channels() const override {
    return options_.use_conv_final ? options_.out_channels : options_.init_filters;
  }

 private:
  Options options_;
  std::shared_ptr<Convolution> first_;
  std::shared_ptr<Dropout> dropout_;
  std::vector<std::shared_ptr<Layer>> down_, upsamples_, up_;
  std::shared_ptr<Sequence> final_;
};
CYTRA_REGISTER(Model, SegResNet, "SegResNet");

}  // namespace
}  // namespace cytra::nn
