#include "nn/blocks/dynunet_block.h"

#include <utility>

#include <ATen/ATen.h>

namespace cytra::nn {

std::shared_ptr<Convolution> unet_conv(int64_t in,
                                       int64_t out,
                                       ConvOptions options,
                                       double dropout) {
  for (std::size_t d = 0; d < options.kernel.size(); ++d)
    options.padding.push_back((options.kernel[d] - options.stride[d] + 1) / 2);
  return std::make_shared<Convolution>(in, out, options, AdnOptions{{}, {}, dropout});
}

UnetBlock::UnetBlock(int64_t in, int64_t out, const UnetBlockOptions& options)
    : residual_(options.residual) {
  const Sizes one(options.kernel.size(), 1);
  const auto conv = [&](int64_t from, const Sizes& kernel, const Sizes& stride) {
    return unet_conv(
        from, out, {kernel, stride, false, false, {}, 1, options.he_slope}, options.dropout);
  };
  const auto norm = [&] { return std::make_shared<Norm>(options.norm, out); };
  conv1_ = register_module("conv1", conv(in, options.kernel, options.stride));
  conv2_ = register_module("conv2", conv(out, options.kernel, one));
  act_ = put<Activation>(*this, "lrelu", options.act);
  norm1_ = register_module("norm1", norm());
  norm2_ = register_module("norm2", norm());
  if (residual_ && (in != out || options.stride != one)) {
    conv3_ = register_module("conv3", conv(in, one, options.stride));
    norm3_ = register_module("norm3", norm());
  }
}

at::Tensor UnetBlock::forward(const at::Tensor& x) {
  at::Tensor y = call(*conv2_, norm_act(*norm1_, *act_, call(*conv1_, x)));
  if (!residual_) return norm_act(*norm2_, *act_, std::move(y));
  return act_->of_result(call(*norm2_, y) + (conv3_ ? call(*norm3_, call(*conv3_, x)) : x));
}

UnetUpBlock::UnetUpBlock(
    int64_t in, int64_t out, const Sizes& scale, bool trans_bias, const UnetBlockOptions& options)
    : transp_conv_(
          register_module("transp_conv",
                          unet_conv(in,
                                    out,
                                    {scale, scale, trans_bias, true, {}, 1, options.he_slope},
                                    options.dropout))),
      conv_block_(put<UnetBlock>(*this, "conv_block", 2 * out, out, options)) {}

at::Tensor UnetUpBlock::forward(const at::Tensor& x, at::Tensor skip) {
  const at::Tensor both = at::cat({call(*transp_conv_, x), std::move(skip)}, 1);
  return call(*conv_block_, both);
}

UnetOutBlock::UnetOutBlock(int64_t in, int64_t out, const UnetBlockOptions& options) {
  const Sizes one(options.kernel.size(), 1);
  add("conv",
      unet_conv(in, out, {one, one, true, false, {}, 1, options.he_slope}, options.dropout));
}

}  // namespace cytra::nn
