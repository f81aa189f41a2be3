// DynUNet, the U-Net of nnU-Net, 2D and 3D. Architecture, argument names, parameter names and
// initialisation follow monai.networks.nets.DynUNet (instance norm, leaky ReLU 0.01), so weights go
// both ways unchanged.
#include <algorithm>

#include <fmt/format.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/model.h"
#include "ops/norm.h"

namespace cytra::nn {
namespace {

using Sizes = std::vector<int64_t>;
using torch::nn::Module;

constexpr double kSlope = 0.01;  // of the leaky ReLU
constexpr double kEpsilon = 1e-5;

/// A (transposed) convolution; named `conv` inside a module of its own, as MONAI's Convolution is.
struct Convolution : Module {
  Convolution(int64_t in,
              int64_t out,
              const Sizes& kernel,
              const Sizes& stride,
              bool has_bias = false,
              bool transposed = false)
      : stride_(stride), transposed_(transposed) {
    for (std::size_t d = 0; d < kernel.size(); ++d)
      padding_.push_back(transposed ? 0 : (kernel[d] - stride[d] + 1) / 2);
    Sizes size{transposed ? in : out, transposed ? out : in};
    size.insert(size.end(), kernel.begin(), kernel.end());
    auto inner = register_module("conv", std::make_shared<Module>());
    weight_ = inner->register_parameter("weight", torch::empty(size));
    torch::nn::init::kaiming_normal_(weight_, kSlope);
    if (has_bias) bias_ = inner->register_parameter("bias", torch::zeros(out));
  }
  at::Tensor forward(const at::Tensor& x) {
    // Not at::convolution, which autocast on a CPU does not know.
    if (stride_.size() == 2) {
      return transposed_ ? at::conv_transpose2d(x, weight_, bias_, stride_)
                         : at::conv2d(x, weight_, bias_, stride_, padding_);
    }
    return transposed_ ? at::conv_transpose3d(x, weight_, bias_, stride_)
                       : at::conv3d(x, weight_, bias_, stride_, padding_);
  }

 private:
  Sizes stride_, padding_;
  bool transposed_;
  at::Tensor weight_, bias_;
};

struct InstanceNorm : Module {
  explicit InstanceNorm(int64_t channels)
      : weight(register_parameter("weight", torch::ones(channels))),
        bias(register_parameter("bias", torch::zeros(channels))) {}
  /// With the leaky ReLU of `slope` after it; 1 means none.
  at::Tensor forward(const at::Tensor& x, double slope) {
    return ops::instance_norm(x, weight, bias, kEpsilon, {ops::Activation::kLeakyRelu, slope});
  }
  at::Tensor weight, bias;
};

/// Two convolutions with norm and activation; with `residual`, the input is added before the last
/// activation.
struct Block : Module {
  Block(int64_t in,
        int64_t out,
        const Sizes& kernel,
        const Sizes& stride,
        bool residual,
        double dropout)
      : conv1(register_module("conv1", std::make_shared<Convolution>(in, out, kernel, stride))),
        conv2(register_module(
            "conv2", std::make_shared<Convolution>(out, out, kernel, Sizes(kernel.size(), 1)))),
        norm1(register_module("norm1", std::make_shared<InstanceNorm>(out))),
        norm2(register_module("norm2", std::make_shared<InstanceNorm>(out))),
        residual_(residual),
        dropout_(dropout) {
    const bool is_strided =
        std::any_of(stride.begin(), stride.end(), [](int64_t s) { return s != 1; });
    if (residual && (in != out || is_strided)) {
      conv3 = register_module(
          "conv3", std::make_shared<Convolution>(in, out, Sizes(kernel.size(), 1), stride));
      norm3 = register_module("norm3", std::make_shared<InstanceNorm>(out));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = call(*norm1, drop(call(*conv1, x)), kSlope);
    y = drop(call(*conv2, y));
    if (!residual_) return call(*norm2, y, kSlope);
    y = call(*norm2, y, 1.0) + (conv3 ? call(*norm3, drop(call(*conv3, x)), 1.0) : x);
    return at::leaky_relu_(y, kSlope);
  }
  std::shared_ptr<Convolution> conv1, conv2, conv3;
  std::shared_ptr<InstanceNorm> norm1, norm2, norm3;

 private:
  at::Tensor drop(const at::Tensor& x) const {
    return dropout_ > 0 ? at::dropout(x, dropout_, is_training()) : x;
  }
  bool residual_;
  double dropout_;
};

struct UpBlock : Module {
  UpBlock(
      int64_t in, int64_t out, const Sizes& kernel, const Sizes& scale, bool bias, double dropout)
      : transp_conv(register_module(
            "transp_conv", std::make_shared<Convolution>(in, out, scale, scale, bias, true))),
        conv_block(
            register_module("conv_block",
                            std::make_shared<Block>(
                                2 * out, out, kernel, Sizes(kernel.size(), 1), false, dropout))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) {
    return call(*conv_block, at::cat({call(*transp_conv, x), skip}, 1));
  }
  std::shared_ptr<Convolution> transp_conv;
  std::shared_ptr<Block> conv_block;
};

struct OutBlock : Module {
  OutBlock(int64_t in, int64_t out, const Sizes& one)
      : conv(register_module("conv", std::make_shared<Convolution>(in, out, one, one, true))) {}
  at::Tensor forward(const at::Tensor& x) { return call(*conv, x); }
  std::shared_ptr<Convolution> conv;
};

class DynUNet final : public Model {
 public:
  struct Options : ModelOptions {
    int64_t spatial_dims = 2, in_channels = 1, out_channels = 1;
    std::vector<Sizes> kernel_size{{3}, {3}, {3}}, strides{{1}, {2}, {2}},
        upsample_kernel_size{{2}, {2}};
    Sizes filters{16, 32, 64};
    double dropout = 0;
    bool res_block = false, trans_bias = false;
    template <class V>
    void visit(V& v) {
      v("spatial_dims", spatial_dims, "2 or 3", 2, 3);
      v("in_channels", in_channels, "image channels C", 1, 1e5);
      v("out_channels", out_channels, "logits K", 1, 1e5);
      v("kernel_size", kernel_size, "kernels, per level: one number or one per dimension");
      v("strides", strides, "downsampling, per level, likewise; the first is usually 1");
      v("upsample_kernel_size",
        upsample_kernel_size,
        "upsampling, per level but the first: strides without the first");
      v("filters", filters, "features, per level", 1, 1e5);
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
      v("res_block", res_block, "residual blocks in the encoder");
      v("trans_bias", trans_bias, "biases in the upsampling");
      ModelOptions::visit(v);
    }
    /// Also gives every kernel and stride one number per dimension.
    void check() {
      const std::size_t levels = filters.size();
      if (levels < 2 || kernel_size.size() != levels || strides.size() != levels ||
          upsample_kernel_size.size() != levels - 1) {
        throw ConfigError(fmt::format(
            "DynUNet: filters, kernel_size and strides need one entry per level (>= 2), "
            "upsample_kernel_size one less; "
            "got {}, {}, {} and {}",
            levels,
            kernel_size.size(),
            strides.size(),
            upsample_kernel_size.size()));
      }
      for (auto* entries : {&kernel_size, &strides, &upsample_kernel_size}) {
        for (Sizes& entry : *entries) {
          if (entry.size() == 1) entry.resize(static_cast<std::size_t>(spatial_dims), entry[0]);
          if (static_cast<int64_t>(entry.size()) != spatial_dims ||
              *std::min_element(entry.begin(), entry.end()) < 1) {
            throw ConfigError(
                "DynUNet: kernel_size, strides and upsample_kernel_size take positive numbers, one "
                "or one per dimension");
          }
        }
      }
      for (std::size_t level = 1; level < levels; ++level) {
        if (upsample_kernel_size[level - 1] != strides[level]) {
          throw ConfigError(
              "DynUNet: upsample_kernel_size must equal strides without the first, or the skips do "
              "not fit");
        }
      }
    }
  };
  explicit DynUNet(const Options& options) : Model(options), options_(options) {
    const auto& [kernel, stride, filters] =
        std::tie(options_.kernel_size, options_.strides, options_.filters);
    const std::size_t last = filters.size() - 1;
    const auto down = [&](std::size_t level) {
      const int64_t in = level == 0 ? options.in_channels : filters[level - 1];
      return std::make_shared<Block>(
          in, filters[level], kernel[level], stride[level], options.res_block, options.dropout);
    };
    encoder_.push_back(register_module("input_block", down(0)));
    auto downsamples = register_module("downsamples", std::make_shared<Module>());
    for (std::size_t level = 1; level < last; ++level) {
      encoder_.push_back(downsamples->register_module(std::to_string(level - 1), down(level)));
    }
    encoder_.push_back(register_module("bottleneck", down(last)));
    auto upsamples = register_module("upsamples", std::make_shared<Module>());
    for (std::size_t level = last; level > 0; --level) {
      auto block = std::make_shared<UpBlock>(filters[level],
                                             filters[level - 1],
                                             kernel[level],
                                             options_.upsample_kernel_size[level - 1],
                                             options.trans_bias,
                                             options.dropout);
      decoder_.push_back(upsamples->register_module(std::to_string(last - level), block));
    }
    const Sizes one(static_cast<std::size_t>(options.spatial_dims), 1);
    output_ = register_module("output_block",
                              std::make_shared<OutBlock>(filters[0], options.out_channels, one));
  }

  at::Tensor forward(const at::Tensor& image) override {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;  // (N,C,[D,]H,W)
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    skips.pop_back();
    for (const auto& block : decoder_) {
      x = run(block, x, skips.back());
      skips.pop_back();
    }
    return call(*output_, x);  // (N,K,[D,]H,W)
  }
  std::vector<int64_t> divisor() const override {
    Sizes product(static_cast<std::size_t>(options_.spatial_dims), 1);
    for (const Sizes& stride : options_.strides) {
      for (std::size_t d = 0; d < product.size(); ++d) product[d] *= stride[d];
    }
    return product;
  }
  int64_t in_channels() const override { return options_.in_channels; }
  int64_t out_channels() const override { return options_.out_channels; }
  int64_t spatial_dims() const override { return options_.spatial_dims; }

 private:
  Options options_;
  std::vector<std::shared_ptr<Block>> encoder_;
  std::vector<std::shared_ptr<UpBlock>> decoder_;
  std::shared_ptr<OutBlock> output_;
};
CYTRA_REGISTER(Model, DynUNet, "DynUNet");

}  // namespace
}  // namespace cytra::nn
