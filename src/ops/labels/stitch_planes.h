#pragma once
#include <cstdint>
#include <map>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Joins the objects of neighbouring planes: an object goes on in the one of the next plane that it
/// shares most with, where the share of both that is common is `threshold` or more and no other of
/// that plane shares more with it. Others keep numbers of their own, new ones in their order.
/// Source: cellpose.utils.stitch3D (where a plane without objects comes first, it repeats numbers).
class PlaneStitcher {
 public:
  explicit PlaneStitcher(double threshold) : threshold_(threshold) {}
  /// The next plane (Y,X), with objects of its own -> int32, which must not be changed.
  at::Tensor add(const at::Tensor& plane);

 private:
  const double threshold_;
  at::Tensor above_;                        // the plane before
  std::map<int32_t, int64_t> sizes_above_;  // pixels of its objects
  int32_t last_ = 0;                        // the largest number that is given
};
/// Stitches planes along `axis`. Shape: labels (Z,Y,X) int32 -> the same.
at::Tensor stitch_planes(const at::Tensor& labels, int64_t axis, double threshold);

}  // namespace cytra::ops
