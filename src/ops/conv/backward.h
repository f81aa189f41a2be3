#pragma once
#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "ops/conv/conv.h"

namespace cytra::ops::cpu {

/// Gradients of a convolution's input, weight and bias on a CPU, those of `needs` alone; the
/// weight's by a kernel of ours where it is faster, else in a part for each thread where it has few
/// values, all else as convolution_backward() has it. Threads that share one such gradient wait for
/// each other inside of oneDNN, and spin: beside another program on these cores each wait takes a
/// time slice.
/// Shape: as convolution(); `grad` has its output's.
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_gradients(const at::Tensor& grad,
                                                              const at::Tensor& input,
                                                              const at::Tensor& weight,
                                                              const ConvOptions& options,
                                                              std::array<bool, 3> needs);

}  // namespace cytra::ops::cpu
