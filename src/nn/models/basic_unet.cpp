// BasicUNet: five levels, max pooling, two convolutions each. Architecture, arguments and parameter
// names follow monai.networks.nets.BasicUNet; Falk et al. 2019, doi:10.1038/s41592-018-0261-2.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/convolution.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

struct MaxPool final : Layer {
  at::Tensor forward(const at::Tensor& x) override {
    return x.dim() == 4 ? at::max_pool2d(x, 2) : at::max_pool3d(x, 2);
  }
};

class BasicUNet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() {
      spatial_dims = 3;
      out_channels = 2;
    }
    Sizes features{32, 32, 64, 128, 256, 32};
    config::Node act = config::parse_yaml("[leakyrelu, {negative_slope: 0.1}]", "default"),
                 norm = config::parse_yaml("[instance, {affine: true}]", "default");
    bool bias = true;
    double dropout = 0;
    std::string upsample = "deconv";
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("features",
        features,
        "features of the five levels, and before the last convolution",
        1,
        1e5);
      v("act", act, "relu, prelu, [leakyrelu, {negative_slope: 0.1}] ...");
      v("norm", norm, "[instance, {affine: true}], batch, [group, {num_groups: 8}] ...");
      v("bias", bias, "biases in the convolutions");
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
      v("upsample", upsample, "how sides are doubled", kUpSampleModes);
    }
    void check() const {
      if (features.size() != 6) {
        throw ConfigError(
            "BasicUNet: features need six numbers: five levels and the last convolution's; got {}",
            features.size());
      }
    }
  };

  explicit BasicUNet(const Options& options) : ImageModel(options) {
    const Sizes& features = options.features;
    const AdnOptions adn{
        norm_options(options.norm), activation_options(options.act), options.dropout};
    const auto two_convs = [&](int64_t in, int64_t out) {
      const ConvOptions conv{options.each(3), options.each(1), options.bias};
      auto both = std::make_shared<Sequence>();
      both->add("conv_0", std::make_shared<Convolution>(in, out, conv, adn));
      both->add("conv_1", std::make_shared<Convolution>(out, out, conv, adn));
      return both;
    };
    encoder_.push_back(register_module("conv_0", two_convs(options.in_channels, features[0])));
    for (std::size_t level = 1; level < kLevels; ++level) {
      auto down = std::make_shared<Sequence>();
      down->add("max_pooling", std::make_shared<MaxPool>());
      down->add("convs", two_convs(features[level - 1], features[level]));
      encoder_.push_back(register_module(fmt::format("down_{}", level), down));
    }
    for (std::size_t level = kLevels - 1; level > 0; --level) {
      const int64_t in = features[level];
      const int64_t up = level == 1 ? in : in / 2;
      const std::string name = fmt::format("upcat_{}", level);
      upsamples_.push_back(put<UpSample>(
          *this, name + ".upsample", in, up, UpSampleOptions{options.upsample, options.each(2)}));
      decoder_.push_back(
          put(*this,
              name + ".convs",
              two_convs(features[level - 1] + up, features[level == 1 ? 5 : level - 1])));
    }
    final_ = put<Conv>(*this,
                       "final_conv",
                       features[5],
                       options.out_channels,
                       ConvOptions{options.each(1), options.each(1)});
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    skips.pop_back();  // the bottom is none
    for (std::size_t i = 0; i < decoder_.size(); ++i) {
      x = at::cat({popped(skips), run(upsamples_[i], x)}, 1);
      x = run(decoder_[i], x);
    }
    return call(*final_, x);
  }
  std::vector<int64_t> divisor() const override {
    return Sizes(static_cast<std::size_t>(spatial_dims()), 1 << (kLevels - 1));
  }

 private:
  static constexpr std::size_t kLevels = 5;

  std::vector<std::shared_ptr<Sequence>> encoder_, decoder_;
  std::vector<std::shared_ptr<UpSample>> upsamples_;
  std::shared_ptr<Conv> final_;
};
CYTRA_REGISTER(Model, BasicUNet, "BasicUNet", "BasicUnet", "Basicunet");

}  // namespace
}  // namespace cytra::nn
