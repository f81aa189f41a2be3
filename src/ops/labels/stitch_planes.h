#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Joins the objects of neighbouring planes: an object goes on in the one of the next plane that it
/// shares most with, where the share of both that is common is `threshold` or more and no other of
/// that plane shares more with it. Others keep numbers of their own, new ones in their order.
/// Shape: labels (Z,Y,X) int32, whose planes along `axis` have objects of their own -> the same.
/// Source: cellpose.utils.stitch3D (where a plane without objects comes first, it repeats numbers).
at::Tensor stitch_planes(const at::Tensor& labels, int64_t axis, double threshold);

}  // namespace cytra::ops
