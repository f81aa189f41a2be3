#include "inference/outputs/overlay_rows.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace cytra::inference {
namespace {

constexpr int64_t kLargestSide = 2048;  // as in draw_overlay()

/// Flattens (K,...) -> (...): the number of the last channel that is not 0, in memory of its own.
at::Tensor flattened(const at::Tensor& labels) {
  if (labels.size(0) == 1) return labels[0].to(at::kInt, false, /*copy=*/true);
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[0] = labels.size(0);
  const at::Tensor numbers = at::arange(1, labels.size(0) + 1, at::kInt).view(shape);
  return (numbers * labels.ne(0)).amax(0);
}

}  // namespace

OverlayRows::OverlayRows(const ModelInput& input)
    : input_(input),
      step_((std::max(input.shape.back(), input.shape[input.shape.size() - 2]) - 1) / kLargestSide +
            1) {}

void OverlayRows::take(const at::Tensor& labels) {
  const int64_t count = labels.size(1);
  if (labels.dim() == 3) {  // of a plane
    const int64_t first = (step_ - next_ % step_) % step_;
    if (first < count)
      labels_.push_back(flattened(labels.slice(1, first, count, step_).slice(2, 0, {}, step_)));
  } else {
    for (int64_t z = 0; z < count; ++z) {
      const at::Tensor plane = flattened(labels.select(1, z));
      const auto foreground = plane.count_nonzero().item<int64_t>();
      if (foreground <= most_) continue;
      most_ = foreground;
      plane_ = next_ + z;
      labels_ = {plane};
    }
  }
  next_ += count;
}

io::Image OverlayRows::picture() const {
  if (input_.shape.size() == 4)
    return draw_overlay(input_.shown(plane_, 1).select(1, 0), labels_.at(0));
  std::vector<at::Tensor> rows;
  const int64_t block = 64 * step_;
  for (int64_t first = 0; first < input_.shape[1]; first += block) {
    const at::Tensor part =
        shown_channels(input_.shown(first, std::min(block, input_.shape[1] - first)));
    rows.push_back(at::avg_pool2d(part.to(at::kFloat), step_, step_, 0, /*ceil_mode=*/true));
  }
  return draw_overlay(at::cat(rows, 1), at::cat(labels_));
}

}  // namespace cytra::inference
