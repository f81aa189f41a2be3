#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops::cpu {

/// A convolution without dilation and groups. One number per spatial dimension.
struct ConvForm {
  at::IntArrayRef kernel, stride, padding;
};

/// Whether conv_weight_grad() takes the tensors and is expected to be faster than oneDNN.
bool has_conv_weight_grad(const at::Tensor& image, const at::Tensor& grad, const ConvForm& form);

/// The gradient of a convolution's weight.
/// Shape: image (N,C,[D,]H,W) and grad (N,K,[D',]H',W'), channels-last, both float32 or both
/// bfloat16 -> (K,C,[d,]h,w) in `format`, of that type. Sums are float32; the shapes and the number
/// of threads fix their order.
at::Tensor conv_weight_grad(const at::Tensor& image,
                            const at::Tensor& grad,
                            const ConvForm& form,
                            at::MemoryFormat format);

}  // namespace cytra::ops::cpu
