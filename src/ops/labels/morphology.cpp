#include "ops/labels/morphology.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/ATen.h>

#include "ops/labels/distance.h"
#include "ops/labels/lines.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

/// The largest of values up to `reach` away in a line, in place: van Herk's maxima from both ends
/// of blocks, three comparisons for any reach.
class LineMaximum {
 public:
  LineMaximum(int64_t length, int64_t reach)
      : length_(static_cast<std::size_t>(length)),
        reach_(static_cast<std::size_t>(reach)),
        line_(length_ + 2 * reach_, kLowest),
        ahead_(line_),
        back_(line_) {}
  void operator()(float* values) {
    std::copy(values, values + length_, line_.begin() + static_cast<std::ptrdiff_t>(reach_));
    const std::size_t window = 2 * reach_ + 1, padded = line_.size();
    for (std::size_t block = 0; block < padded; block += window) {
      const std::size_t end = std::min(block + window, padded);
      ahead_[block] = line_[block];
      for (std::size_t i = block + 1; i < end; ++i) ahead_[i] = std::max(ahead_[i - 1], line_[i]);
      back_[end - 1] = line_[end - 1];
      for (std::size_t i = end - 1; i > block; --i) back_[i - 1] = std::max(back_[i], line_[i - 1]);
    }
    for (std::size_t i = 0; i < length_; ++i)
      values[i] = std::max(back_[i], ahead_[i + 2 * reach_]);
  }

 private:
  std::size_t length_, reach_;
  std::vector<float> line_, ahead_, back_;
};

}  // namespace

void maximum_filter(at::Tensor& volume, int64_t reach) {
  for (int64_t axis = 0; axis < 3; ++axis) {
    const int64_t length = volume.size(axis), stride = volume.stride(axis);
    if (length <= 1 || volume.numel() == 0) continue;
    LineMaximum maximum(length, reach);
    for_lines(volume.mutable_data_ptr<float>(),
              volume.numel() / (length * stride),
              length,
              stride,
              0,
              stride,
              [&](float* line) { maximum(line); });
  }
}

at::Tensor dilate(const at::Tensor& mask, const Footprint& footprint) {
  if (footprint.is_ball)
    return distance_transform(mask.eq(0)).le(static_cast<double>(footprint.radius));
  at::Tensor reached = as_volume(mask.ne(0), at::kFloat);
  maximum_filter(reached, footprint.radius);
  return reached.gt(0).reshape(mask.sizes());
}

at::Tensor erode(const at::Tensor& mask, const Footprint& footprint) {
  return dilate(mask.eq(0), footprint).logical_not_();
}

}  // namespace cytra::ops
