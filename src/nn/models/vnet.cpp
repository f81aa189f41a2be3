// VNet: five levels of convolutions of side 5 with residuals. Architecture, arguments and parameter
// names follow monai.networks.nets.VNet; arXiv:1606.04797.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {
namespace {

/// What all of its blocks are made with.
struct VNetStyle {
  ActivationOptions act;
  int64_t spatial_dims;
  bool per_channel;  // `prelu` alone means one parameter for each channel
  bool drop_channels;

  Sizes each(int64_t side) const { return Sizes(static_cast<std::size_t>(spatial_dims), side); }
  std::shared_ptr<Activation> activation(int64_t channels) const {
    ActivationOptions options = act;
    if (per_channel) options.num_parameters = channels;
    return std::make_shared<Activation>(options);
  }
  std::shared_ptr<Norm> norm(int64_t channels) const {
    NormOptions batch;
    batch.kind = "batch";
    return std::make_shared<Norm>(batch, channels);
  }
  std::shared_ptr<Dropout> dropout(double p) const {
    return std::make_shared<Dropout>(p, drop_channels);
  }
};

/// A convolution of side 5 with norm and activation.
struct WideConv : Layer {
  WideConv(int64_t in, int64_t out, bool bias, const VNetStyle& style, const char* act_name)
      : conv_(put<Conv>(
            *this, "conv_block.conv", in, out, ConvOptions{style.each(5), style.each(1), bias})),
        norm_(put(*this, "conv_block.adn.N", style.norm(out))),
        act_(register_module(act_name, style.activation(out))) {}
  at::Tensor forward(const at::Tensor& x) override {
    return norm_act(*norm_, *act_, call(*conv_, x));
  }
  /// activation(norm(convolution) + more)
  at::Tensor plus(const at::Tensor& x, const at::Tensor& more) {
    return act_->of_result(call(*norm_, call(*conv_, x)) + more);
  }

 private:
  std::shared_ptr<Conv> conv_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Activation> act_;
};

/// The image, repeated to 16 channels, is added to its convolution.
struct VNetInput final : WideConv {
  VNetInput(int64_t in, int64_t out, bool bias, const VNetStyle& style)
      : WideConv(in, out, bias, style, "act_function"), times_{1, out / in} {
    times_.resize(static_cast<std::size_t>(style.spatial_dims) + 2, 1);
  }
  at::Tensor forward(const at::Tensor& x) override { return plus(x, x.repeat(times_)); }

 private:
  Sizes times_;
};

struct VNetDown final : Layer {
  VNetDown(int64_t in, int64_t convs, double dropout, bool bias, const VNetStyle& style)
      : down_(put<Conv>(*this,
                        "down_conv",
                        in,
                        2 * in,
                        ConvOptions{style.each(2), style.each(2), bias, false, style.each(0)})),
        norm_(register_module("bn1", style.norm(2 * in))),
        act1_(register_module("act_function1", style.activation(2 * in))),
        act2_(register_module("act_function2", style.activation(2 * in))),
        ops_(register_module(
            "ops", repeated<WideConv>(convs, 2 * in, 2 * in, bias, style, "act_function"))),
        dropout_(register_module("dropout", style.dropout(dropout))) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor down = norm_act(*norm_, *act1_, call(*down_, x));
    return act2_->of_result(call(*ops_, call(*dropout_, down)) + down);
  }

 private:
  std::shared_ptr<Conv> down_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Activation> act1_, act2_;
  std::shared_ptr<Sequence> ops_;
  std::shared_ptr<Dropout> dropout_;
};

struct VNetUp final : torch::nn::Module {
  VNetUp(int64_t in,
         int64_t out,
         int64_t convs,
         double dropout,
         double skip_dropout,
         const VNetStyle& style)
      : up_(put<Conv>(*this,
                      "up_conv",
                      in,
                      out / 2,
                      ConvOptions{style.each(2), style.each(2), true, true, style.each(0)})),
        norm_(register_module("bn1", style.norm(out / 2))),
        dropout_(register_module("dropout", style.dropout(dropout))),
        skip_dropout_(register_module("dropout2", style.dropout(skip_dropout))),
        act1_(register_module("act_function1", style.activation(out / 2))),
        act2_(register_module("act_function2", style.activation(out))),
        ops_(register_module("ops",
                             repeated<WideConv>(convs, out, out, false, style, "act_function"))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) {
    const at::Tensor up = norm_act(*norm_, *act1_, call(*up_, call(*dropout_, x)));
    const at::Tensor both = at::cat({up, call(*skip_dropout_, skip)}, 1);
    return act2_->of_result(call(*ops_, both) + both);
  }

 private:
  std::shared_ptr<Conv> up_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Dropout> dropout_, skip_dropout_;
  std::shared_ptr<Activation> act1_, act2_;
  std::shared_ptr<Sequence> ops_;
};

constexpr int64_t kVNetFeatures = 16;  // of the finest level
constexpr double kSkipDropout = 0.5;   // of the two finest skips: MONAI's, whatever the options say

class VNet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() { spatial_dims = 3; }
    config::Node act = config::Node::make_string("elu");
    std::optional<double> dropout_prob_down = 0.5;
    std::vector<std::optional<double>> dropout_prob_up{0.5, 0.5};
    int64_t dropout_dim = 3;
    bool bias = false;
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("act", act, "elu, relu, prelu (a parameter for each channel), [leakyrelu, {...}] ...");
      v("dropout_prob_down",
        dropout_prob_down,
        "in training, in the two coarsest levels; null: none",
        0,
        1);
      v("dropout_prob_up",
        dropout_prob_up,
        "likewise: of what comes from below (null: none), of its skips");
      v("dropout_dim", dropout_dim, "1: drop single values; 2, 3: whole channels", 1, 3);
      v("bias", bias, "biases in the convolutions of the encoder");
    }
    void check() const {
      if (kVNetFeatures % in_channels != 0)
        throw ConfigError("VNet: in_channels must divide {}, got {}", kVNetFeatures, in_channels);
      if (dropout_prob_up.size() != 2 || !dropout_prob_up[1])
        throw ConfigError("VNet: dropout_prob_up takes two numbers");
    }
  };

  explicit VNet(const Options& options) : ImageModel(options) {
    const VNetStyle style{activation_options(options.act),
                          options.spatial_dims,
                          options.act.kind == config::Kind::string && options.act.string == "prelu",
                          options.dropout_dim > 1};
    const bool bias = options.bias;
    const double down = options.dropout_prob_down.value_or(0);
    const double up = options.dropout_prob_up[0].value_or(0), skip = *options.dropout_prob_up[1];
    encoder_.push_back(
        put<VNetInput>(*this, "in_tr", options.in_channels, kVNetFeatures, bias, style));
    const auto add_down = [&](const char* name, int64_t in, int64_t convs, double dropout) {
      encoder_.push_back(put<VNetDown>(*this, name, in, convs, dropout, bias, style));
    };
    add_down("down_tr32", 16, 1, 0);
    add_down("down_tr64", 32, 2, 0);
    add_down("down_tr128", 64, 3, down);
    add_down("down_tr256", 128, 2, down);
    const auto add_up = [&](const char* name,
                            int64_t in,
                            int64_t out,
                            int64_t convs,
                            double dropout,
                            double of_skip) {
      decoder_.push_back(put<VNetUp>(*this, name, in, out, convs, dropout, of_skip, style));
    };
    add_up("up_tr256", 256, 256, 2, up, skip);
    add_up("up_tr128", 256, 128, 2, up, skip);
    add_up("up_tr64", 128, 64, 1, 0, kSkipDropout);
    add_up("up_tr32", 64, 32, 1, 0, kSkipDropout);
    const int64_t classes = options.out_channels;
    last_ = put<WideConv>(*this, "out_tr", 32, classes, bias, style, "act_function1");
    logits_ = put<Conv>(
        *this, "out_tr.conv2", classes, classes, ConvOptions{options.each(1), options.each(1)});
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    for (std::size_t i = 0; i < decoder_.size(); ++i)
      x = run(decoder_[i], x, skips[decoder_.size() - 1 - i]);
    return call(*logits_, run(last_, x));
  }
  std::vector<int64_t> divisor() const override {
    return Sizes(static_cast<std::size_t>(spatial_dims()), 16);
  }

 private:
  std::vector<std::shared_ptr<Layer>> encoder_;
  std::vector<std::shared_ptr<VNetUp>> decoder_;
  std::shared_ptr<WideConv> last_;
  std::shared_ptr<Conv> logits_;
};
CYTRA_REGISTER(Model, VNet, "VNet");

}  // namespace
}  // namespace cytra::nn
