#pragma once
// The blocks of MONAI's DynUNet, UNETR and SwinUNETR: monai.networks.blocks.dynunet_block.
#include "nn/blocks/convolution.h"

namespace cytra::nn {

struct UnetBlockOptions {
  Sizes kernel, stride;
  NormOptions norm;
  ActivationOptions act;
  double dropout = 0;
  bool residual = false;
  std::optional<double> he_slope = {};  // ConvOptions
};

/// A convolution with padding (kernel - stride + 1) / 2, and dropout after it.
std::shared_ptr<Convolution> unet_conv(int64_t in,
                                       int64_t out,
                                       ConvOptions options,
                                       double dropout);

/// UnetBasicBlock: two convolutions with norm and activation; UnetResBlock: the input, through a
/// convolution where its shape differs, is added before the last activation.
struct UnetBlock final : Layer {
  UnetBlock(int64_t in, int64_t out, const UnetBlockOptions& options);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::shared_ptr<Convolution> conv1_, conv2_, conv3_;
  std::shared_ptr<Norm> norm1_, norm2_, norm3_;
  std::shared_ptr<Activation> act_;
  bool residual_;
};

/// UnetUpBlock: a transposed convolution by `scale`, then a block on that and the skip.
struct UnetUpBlock final : torch::nn::Module {
  UnetUpBlock(int64_t in,
              int64_t out,
              const Sizes& scale,
              bool trans_bias,
              const UnetBlockOptions& options);
  at::Tensor forward(const at::Tensor& x, at::Tensor skip);

 private:
  std::shared_ptr<Convolution> transp_conv_;
  std::shared_ptr<UnetBlock> conv_block_;
};

/// UnetOutBlock: a convolution of side 1.
struct UnetOutBlock final : Sequence {
  UnetOutBlock(int64_t in, int64_t out, const UnetBlockOptions& options);
};

}  // namespace cytra::nn
