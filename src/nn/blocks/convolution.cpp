// Source: monai.networks.blocks.{Convolution,ADN,UpSample}, monai.networks.utils.pixelshuffle.
#include "nn/blocks/convolution.h"

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include "base/error.h"

namespace cytra::nn {
namespace {

struct LinearUpsampling final : Layer {
  LinearUpsampling(const Sizes& scale, bool align_corners)
      : scale_(scale.begin(), scale.end()), align_corners_(align_corners) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::ArrayRef<double> scale(scale_);  // not a size: a trace takes other images
    return scale_.size() == 2
               ? at::upsample_bilinear2d(x, at::OptionalIntArrayRef(), align_corners_, scale)
               : at::upsample_trilinear3d(x, at::OptionalIntArrayRef(), align_corners_, scale);
  }

 private:
  std::vector<double> scale_;
  bool align_corners_;
};

/// Maps "conv_block" to scale^dims times the channels, which are then placed beside each other in
/// space, and takes a mean over neighbours against checkerboards. arXiv:1609.05158,
/// arXiv:1707.02937.
struct SubpixelUpsample final : Layer {
  SubpixelUpsample(int64_t in, int64_t out, int64_t scale, std::size_t dims, bool bias)
      : scale_(scale) {
    int64_t parts = 1;
    for (std::size_t d = 0; d < dims; ++d) parts *= scale;
    conv_ = put<Conv>(
        *this, "conv_block", in, out * parts, ConvOptions{Sizes(dims, 3), Sizes(dims, 1), bias});
    const at::NoGradGuard no_grad;  // all parts of a channel begin alike
    at::Tensor one = torch::nn::init::kaiming_normal_(conv_->weight.slice(0, 0, out).clone());
    conv_->weight.copy_(one.repeat_interleave(parts, 0));
  }
  at::Tensor forward(const at::Tensor& input) override {
    const at::Tensor x = call(*conv_, input);
    const int64_t dims = x.dim() - 2;
    int64_t parts = 1;
    Sizes split{x.size(0), 0}, order{0, 1}, size{x.size(0), 0};
    for (int64_t d = 0; d < dims; ++d) {
      parts *= scale_;
      split.push_back(scale_);
      order.insert(order.end(), {dims + 2 + d, d + 2});
      size.push_back(x.size(d + 2) * scale_);
    }
    split[1] = size[1] = x.size(1) / parts;
    for (int64_t d = 0; d < dims; ++d) split.push_back(x.size(d + 2));
    const at::Tensor fine = x.reshape(split).permute(order).reshape(size);
    Sizes before;
    for (int64_t d = 0; d < dims; ++d) before.insert(before.end(), {scale_ - 1, 0});
    const at::Tensor padded = at::constant_pad_nd(fine, before);
    const Sizes window(static_cast<std::size_t>(dims), scale_), step(window.size(), 1);
    return dims == 2 ? at::avg_pool2d(padded, window, step) : at::avg_pool3d(padded, window, step);
  }

 private:
  int64_t scale_;
  std::shared_ptr<Conv> conv_;
};

}  // namespace

std::shared_ptr<Sequence> make_adn(int64_t channels, const AdnOptions& options) {
  auto adn = std::make_shared<Sequence>();
  for (const char letter : options.ordering) {
    if (letter == 'N') {
      if (!options.norm.kind.empty()) adn->add("N", std::make_shared<Norm>(options.norm, channels));
    } else if (letter == 'D') {
      if (options.dropout > 0) adn->add("D", std::make_shared<Dropout>(options.dropout));
    } else if (letter == 'A') {
      if (!options.act.kind.empty()) adn->add("A", std::make_shared<Activation>(options.act));
    } else {
      throw ConfigError(
          "adn_ordering takes the letters N (norm), D (dropout) and A (activation), got '" +
          options.ordering + "'");
    }
  }
  return adn;
}

Convolution::Convolution(int64_t in, int64_t out, const ConvOptions& options) {
  add("conv", std::make_shared<Conv>(in, out, options));
}

Convolution::Convolution(int64_t in, int64_t out, const ConvOptions& options, const AdnOptions& adn)
    : Convolution(in, out, options) {
  add("adn", make_adn(out, adn));
}

UpSample::UpSample(int64_t in, int64_t out, const UpSampleOptions& options) {
  const auto& [mode, scale] = std::tie(options.mode, options.scale);
  const std::size_t dims = scale.size();
  if (mode == "pixelshuffle") {
    add("pixelshuffle", std::make_shared<SubpixelUpsample>(in, out, scale[0], dims, options.bias));
  } else if (mode == "nontrainable") {
    if (in != out) {
      const ConvOptions one{Sizes(dims, 1), Sizes(dims, 1), options.bias};
      add("preconv", std::make_shared<Conv>(in, out, one));
    }
    add("upsample_non_trainable", std::make_shared<LinearUpsampling>(scale, options.align_corners));
  } else {
    ConvOptions conv{scale, scale, options.bias, true, Sizes(dims, 0)};
    if (!options.kernel.empty()) {
      conv.kernel = options.kernel;
      conv.padding.clear();
    }
    if (mode == "deconvgroup" && in % out == 0) conv.groups = out;
    add(mode, std::make_shared<Conv>(in, out, conv));
  }
}

}  // namespace cytra::nn
