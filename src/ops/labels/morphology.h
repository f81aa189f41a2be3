#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// What a mask is swept with: voxels up to `radius` away, in a straight line (a disc or ball) or
/// along each axis (a square or cube).
struct Footprint {
  int64_t radius = 1;
  bool is_ball = true;
};

/// Voxels that the footprint reaches from the mask; erosion: those that it reaches the mask alone
/// from. What is outside of the image counts for nothing. Any radius takes the same time.
/// Shape: mask ([Z,]Y,X) of any real type -> bool. Source: scipy.ndimage.binary_dilation,
/// binary_erosion with border_value=1.
at::Tensor dilate(const at::Tensor& mask, const Footprint& footprint);
at::Tensor erode(const at::Tensor& mask, const Footprint& footprint);

/// The largest value up to `reach` voxels away along each axis, in place. Shape: (Z,Y,X) dense
/// float32.
void maximum_filter(at::Tensor& volume, int64_t reach);

}  // namespace cytra::ops
