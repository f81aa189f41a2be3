#pragma once
#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "ops/conv/conv.h"

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

/// Gradients of a convolution's input, weight and bias on a CPU, only those that `needs` names.
/// The weight's gradient is computed by our kernel where that is faster, else in one part per
/// thread where it has few values; all others by convolution_backward(). Threads that share one
/// such gradient wait for each other inside of oneDNN, and spin: with another program on these
/// cores each wait takes a time slice.
/// Shape: as in convolution(); `grad` has the shape of its output.
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_gradients(const at::Tensor& grad,
                                                              const at::Tensor& input,
                                                              const at::Tensor& weight,
                                                              const ConvOptions& options,
                                                              std::array<bool, 3> needs);

}  // namespace cytra::ops::cpu
