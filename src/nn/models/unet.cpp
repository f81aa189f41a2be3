// UNet: a residual or plain U-Net of strided convolutions. Architecture, arguments and parameter
// names follow monai.networks.nets.UNet; arXiv:1505.04597, Kerfoot et al. 2018.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "config/registry.h"
#include "nn/blocks/convolution.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

/// monai.networks.blocks.ResidualUnit: `subunits` convolutions, and the input added at the end.
struct ResidualUnit final : Layer {
  ResidualUnit(int64_t in,
               int64_t out,
               const ConvOptions& conv,
               const AdnOptions& adn,
               int64_t subunits,
               bool last_conv_only = false) {
    ConvOptions each = conv;
    auto units = std::make_shared<Sequence>();
    for (int64_t unit = 0; unit < subunits; ++unit) {
      const int64_t from = unit == 0 ? in : out;
      units->add(fmt::format("unit{}", unit),
                 last_conv_only && unit == subunits - 1
                     ? std::make_shared<Convolution>(from, out, each)
                     : std::make_shared<Convolution>(from, out, each, adn));
      each.stride.assign(each.stride.size(), 1);
    }
    units_ = register_module("conv", units);
    const bool is_strided = conv.stride != each.stride;
    if (!is_strided && in == out) return;
    ConvOptions adapt = conv;
    if (!is_strided) adapt.kernel.assign(adapt.kernel.size(), 1);
    residual_ = put<Conv>(*this, "residual", in, out, adapt);
  }
  at::Tensor forward(const at::Tensor& x) override {
    return call(*units_, x) + (residual_ ? call(*residual_, x) : x);
  }

 private:
  std::shared_ptr<Sequence> units_;
  std::shared_ptr<Conv> residual_;
};

class UNet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Sizes channels{16, 32, 64}, kernel_size{3}, up_kernel_size{3};
    std::vector<Sizes> strides;
    int64_t num_res_units = 0;
    config::Node act = config::Node::make_string("prelu"),
                 norm = config::Node::make_string("instance");
    double dropout = 0;
    bool bias = true;
    std::string adn_ordering = "NDA";
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("channels", channels, "features, per level", 1, 1e5);
      v("strides",
        strides,
        "downsampling into each level but the first: a number, or per dimension");
      v("kernel_size", kernel_size, "one number or one per dimension", 1, 99);
      v("up_kernel_size", up_kernel_size, "of the upsampling, likewise", 1, 99);
      v("num_res_units",
        num_res_units,
        "convolutions of a residual unit; 0: no such units",
        0,
        100);
      v("act", act, "prelu, relu, [leakyrelu, {negative_slope: 0.1}] ...");
      v("norm", norm, "instance, batch, [group, {num_groups: 8}] ...");
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
      v("bias", bias, "biases in the convolutions");
      v("adn_ordering", adn_ordering, "after a convolution: A activation, D dropout, N norm");
    }
    void check() {
      if (strides.empty() && !channels.empty()) strides.assign(channels.size() - 1, {2});
      if (channels.size() < 2 || strides.size() + 1 < channels.size()) {
        throw ConfigError(
            "UNet: channels need two levels or more, and strides one entry less; got {} and {}",
            channels.size(),
            strides.size());
      }
      if (strides.size() + 1 > channels.size()) {  // as MONAI
        log::warn("UNet: {} channels have {} strides between them; the last {} of {} are not used",
                  channels.size(),
                  channels.size() - 1,
                  strides.size() + 1 - channels.size(),
                  strides.size());
        strides.resize(channels.size() - 1);
      }
      for (Sizes& stride : strides) stride = per_dimension(stride, spatial_dims, "UNet: strides");
      kernel_size = odd_per_dimension(kernel_size, spatial_dims, "UNet: kernel_size");
      up_kernel_size = odd_per_dimension(up_kernel_size, spatial_dims, "UNet: up_kernel_size");
    }
  };

  explicit UNet(const Options& options) : ImageModel(options), strides_(options.strides) {
    const AdnOptions adn{norm_options(options.norm),
                         activation_options(options.act),
                         options.dropout,
                         options.adn_ordering};
    const Sizes& channels = options.channels;
    const int64_t units = options.num_res_units;
    const auto down = [&](int64_t in, int64_t out, const Sizes& stride) -> std::shared_ptr<Layer> {
      const ConvOptions conv{options.kernel_size, stride, options.bias};
      if (units > 0) return std::make_shared<ResidualUnit>(in, out, conv, adn, units);
      return std::make_shared<Convolution>(in, out, conv, adn);
    };
    const auto up = [&](int64_t in, int64_t out, const Sizes& stride, bool is_top) {
      const ConvOptions conv{options.up_kernel_size, stride, options.bias, true};
      auto layer = is_top && units == 0 ? std::make_shared<Convolution>(in, out, conv)
                                        : std::make_shared<Convolution>(in, out, conv, adn);
      if (units == 0) return std::static_pointer_cast<Sequence>(layer);
      const ConvOptions same{options.kernel_size, options.each(1), options.bias};
      return std::make_shared<Sequence>(std::vector<std::shared_ptr<Layer>>{
          layer, std::make_shared<ResidualUnit>(out, out, same, adn, 1, is_top)});
    };
    std::string name = "model";  // of a level; the next lies inside of it
    for (std::size_t level = 0; level + 1 < channels.size(); ++level) {
      const bool is_top = level == 0, is_last = level + 2 == channels.size();
      const int64_t in = is_top ? options.in_channels : channels[level - 1], here = channels[level];
      const Sizes& stride = options.strides[level];
      down_.push_back(put(*this, name + ".0", down(in, here, stride)));
      up_.push_back(put(*this,
                        name + ".2",
                        up(here + (is_last ? channels[level + 1] : here),
                           is_top ? options.out_channels : in,
                           stride,
                           is_top)));
      name += ".1.submodule";
    }
    bottom_ = put(*this, name, down(channels.end()[-2], channels.back(), options.each(1)));
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;
    for (const auto& block : down_) skips.push_back(x = run(block, x));
    x = run(bottom_, x);
    for (std::size_t level = up_.size(); level-- > 0;) {
      x = at::cat({popped(skips), x}, 1);
      x = run(up_[level], x);
    }
    return x;
  }
  std::vector<int64_t> divisor() const override { return product_of(strides_); }

 private:
  std::vector<Sizes> strides_;
  std::vector<std::shared_ptr<Layer>> down_;  // the finest first
  std::vector<std::shared_ptr<Sequence>> up_;
  std::shared_ptr<Layer> bottom_;
};
CYTRA_REGISTER(Model, UNet, "UNet", "Unet");

}  // namespace
}  // namespace cytra::nn
