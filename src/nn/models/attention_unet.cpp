// AttentionUnet: a U-Net whose skip connections are weighted by features of the level below.
// Architecture, arguments and parameter names follow monai.networks.nets.AttentionUnet;
// arXiv:1804.03999.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/convolution.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

AdnOptions batch_relu(double dropout) {
  AdnOptions adn;
  adn.norm.kind = "batch";
  adn.act.kind = "relu";
  adn.dropout = dropout;
  return adn;
}

/// The skip, with each pixel times a number from 0 to 1 that a gate computes from both inputs.
struct AttentionGate final : torch::nn::Module {
  AttentionGate(int64_t channels, const ConvOptions& one) {
    const int64_t inner = channels / 2;
    NormOptions batch;
    batch.kind = "batch";
    const auto convolved = [&](int64_t in, int64_t out) {
      return std::make_shared<Sequence>(std::vector<std::shared_ptr<Layer>>{
          std::make_shared<Convolution>(in, out, one), std::make_shared<Norm>(batch, out)});
    };
    of_gate_ = register_module("W_g", convolved(channels, inner));
    of_skip_ = register_module("W_x", convolved(channels, inner));
    weight_ = register_module("psi", convolved(inner, 1));
  }
  at::Tensor forward(const at::Tensor& gate, const at::Tensor& skip) {
    const at::Tensor both = at::relu(call(*of_gate_, gate) + call(*of_skip_, skip));
    return skip * at::sigmoid(call(*weight_, both));
  }

 private:
  std::shared_ptr<Sequence> of_gate_, of_skip_, weight_;
};

/// Upsamples the features of the level below and merges them with the weighted skip.
struct AttentionUp final : torch::nn::Module {
  AttentionUp(int64_t below,
              int64_t channels,
              const ConvOptions& up,
              const ConvOptions& same,
              const ConvOptions& one,
              double dropout) {
    AdnOptions merged;  // MONAI's defaults
    merged.norm.kind = "instance";
    merged.act.kind = "prelu";
    merged.dropout = dropout;
    attention_ = put<AttentionGate>(*this, "attention", channels, one);
    up_ = put<Convolution>(*this, "upconv.up", below, channels, up, batch_relu(0));
    merge_ = put<Convolution>(*this, "merge", 2 * channels, channels, same, merged);
  }
  at::Tensor forward(const at::Tensor& below, const at::Tensor& skip) {
    const at::Tensor gate = call(*up_, below);
    return call(*merge_, at::cat({call(*attention_, gate, skip), gate}, 1));
  }

 private:
  std::shared_ptr<AttentionGate> attention_;
  std::shared_ptr<Convolution> up_, merge_;
};

class AttentionUnet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Sizes channels{16, 32, 64}, kernel_size{3}, up_kernel_size{3};
    std::vector<Sizes> strides;
    double dropout = 0;
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("channels", channels, "features, per level", 2, 1e5);
      v("strides",
        strides,
        "downsampling into each level but the first: a number, or per dimension");
      v("kernel_size", kernel_size, "one number or one per dimension", 1, 99);
      v("up_kernel_size", up_kernel_size, "of the upsampling, likewise", 1, 99);
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
    }
    void check() {
      if (strides.empty() && !channels.empty()) strides.assign(channels.size() - 1, {2});
      if (channels.size() < 2 || strides.size() + 1 < channels.size()) {
        throw ConfigError(
            "AttentionUnet: channels need two levels or more, and strides one entry less; got {} "
            "and {}",
            channels.size(),
            strides.size());
      }
      strides.resize(channels.size() - 1);
      for (Sizes& stride : strides)
        stride = per_dimension(stride, spatial_dims, "AttentionUnet: strides");
      kernel_size = odd_per_dimension(kernel_size, spatial_dims, "AttentionUnet: kernel_size");
      up_kernel_size =
          odd_per_dimension(up_kernel_size, spatial_dims, "AttentionUnet: up_kernel_size");
    }
  };

  explicit AttentionUnet(const Options& options) : ImageModel(options), strides_(options.strides) {
    const Sizes& channels = options.channels;
    const ConvOptions one{options.each(1), options.each(1)}, same{options.each(3), options.each(1)};
    const auto convs = [&](int64_t in, int64_t out, const Sizes& stride) {
      const AdnOptions adn = batch_relu(options.dropout);
      return std::make_shared<Sequence>(std::vector<std::shared_ptr<Layer>>{
          std::make_shared<Convolution>(in, out, ConvOptions{options.kernel_size, stride}, adn),
          std::make_shared<Convolution>(
              out, out, ConvOptions{options.kernel_size, options.each(1)}, adn)});
    };
    encoder_.push_back(
        put(*this, "model.0.conv", convs(options.in_channels, channels[0], options.each(1))));
    std::string name = "model.1";  // of a level; the next lies inside of it
    for (std::size_t level = 0; level + 1 < channels.size(); ++level) {
      const bool is_last = level + 2 == channels.size();
      const Sizes& stride = options.strides[level];
      const ConvOptions up{options.up_kernel_size, stride, true, true};
      decoder_.push_back(put<AttentionUp>(
          *this, name, channels[level + 1], channels[level], up, same, one, options.dropout));
      name += ".submodule";
      encoder_.push_back(put(*this,
                             name + (is_last ? ".conv" : ".0.conv"),
                             convs(channels[level], channels[level + 1], stride)));
      name += ".1";
    }
    reduce_ = put<Convolution>(*this, "model.2", channels[0], options.out_channels, one);
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    for (std::size_t level = decoder_.size(); level-- > 0;)
      x = run(decoder_[level], x, skips[level]);
    return call(*reduce_, x);
  }
  std::vector<int64_t> divisor() const override { return product_of(strides_); }

 private:
  std::vector<Sizes> strides_;
  std::vector<std::shared_ptr<Sequence>> encoder_;  // the finest first
  std::vector<std::shared_ptr<AttentionUp>> decoder_;
  std::shared_ptr<Convolution> reduce_;
};
CYTRA_REGISTER(Model, AttentionUnet, "AttentionUnet");

}  // namespace
}  // namespace cytra::nn
