#pragma once
// How alike two label images are, object by object.
#include <algorithm>

#include <ATen/ATen.h>

namespace cytra::test {

/// The least IoU of an object with that of the other image that it overlaps most; 0 for another
/// number of objects.
inline double least_iou(const at::Tensor& found, const at::Tensor& expected) {
  const int64_t count = expected.max().item<int64_t>();
  double least = found.max().item<int64_t>() == count ? 1 : 0;
  for (int64_t label = 1; label <= count; ++label) {
    const at::Tensor object = expected.eq(label);
    const at::Tensor inside = found.masked_select(object);
    const at::Tensor other = found.eq(std::get<0>(inside.mode()).item());
    const double both = object.logical_and(other).sum().item<double>();
    least = std::min(least, both / object.logical_or(other).sum().item<double>());
  }
  return least;
}

}  // namespace cytra::test
