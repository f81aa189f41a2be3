#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// The structuring element of dilation and erosion: voxels up to `radius` away, in a straight line
/// (a disc or ball) or along each axis (a square or cube).
struct Footprint {
  int64_t radius = 1;
  bool is_ball = true;
};

/// Dilation gives the voxels that the footprint reaches from the mask; erosion those from which it
/// reaches voxels of the mask only. The outside of the image is ignored. The time does not depend
/// on the radius.
/// Shape: mask ([Z,]Y,X) of any real type -> bool. Source: scipy.ndimage.binary_dilation,
/// binary_erosion with border_value=1.
at::Tensor dilate(const at::Tensor& mask, const Footprint& footprint);
at::Tensor erode(const at::Tensor& mask, const Footprint& footprint);

/// The largest value up to `reach` voxels away along each axis, in place. Shape: (Z,Y,X) dense
/// float32.
void maximum_filter(at::Tensor& volume, int64_t reach);

}  // namespace cytra::ops
