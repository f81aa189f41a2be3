// A 3D convolution whose case of one voxel is a matrix product. Source: torch.nn.functional.conv3d.
#include "ops/conv3d.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>

namespace cytra::ops {
namespace {

bool are_all(at::IntArrayRef values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](int64_t each) { return each == value; });
}

/// Where a product is faster than torch: not in bfloat16.
bool is_product(const at::Tensor& x, const at::Tensor& weight) {
  return x.dim() == 5 && x.scalar_type() != at::kBFloat16 &&
         !at::autocast::is_autocast_enabled(at::kCPU) && weight.dim() == 5 &&
         are_all(weight.sizes().slice(2), 1) && x.device().is_cpu() && !x.is_contiguous() &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast3d) && !torch::jit::tracer::isTracing();
}

}  // namespace

at::Tensor conv3d(const at::Tensor& x,
                  const at::Tensor& weight,
                  const at::Tensor& bias,
                  at::IntArrayRef stride,
                  at::IntArrayRef padding,
                  at::IntArrayRef dilation,
                  int64_t groups) {
  if (groups != 1 || !are_all(stride, 1) || !are_all(padding, 0) || !is_product(x, weight))
    return at::conv3d(x, weight, bias, stride, padding, dilation, groups);
  return at::linear(x.permute({0, 2, 3, 4, 1}), weight.flatten(1), bias).permute({0, 4, 1, 2, 3});
}

}  // namespace cytra::ops
