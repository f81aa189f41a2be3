#include "ops/boxes/boxes.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

namespace cytra::ops {
namespace {

at::Tensor first_of(const at::Tensor& corners) {
  const int64_t dims = corners.size(-1) / 2;
  return corners.narrow(-1, 0, dims);
}
at::Tensor last_of(const at::Tensor& corners) {
  const int64_t dims = corners.size(-1) / 2;
  return corners.narrow(-1, dims, dims);
}

/// A number for each axis of an image ([Z,]Y,X), for each of the corners' columns.
template <class T>
at::Tensor by_column(const std::vector<T>& by_axis, const at::TensorOptions& options) {
  const at::Tensor once = at::tensor(std::vector<T>(by_axis.rbegin(), by_axis.rend()), options);
  return once.repeat({2});
}

}  // namespace

Boxes Boxes::chosen(const at::Tensor& numbers) const {
  return {corners.index_select(0, numbers),
          scores.defined() ? scores.index_select(0, numbers) : at::Tensor(),
          classes.index_select(0, numbers)};
}

at::Tensor box_sides(const at::Tensor& corners) {
  return last_of(corners) - first_of(corners);
}

at::Tensor box_volumes(const at::Tensor& corners) {
  return box_sides(corners).prod(-1);
}

at::Tensor box_iou(const at::Tensor& boxes, const at::Tensor& others) {
  const at::Tensor a = boxes.unsqueeze(1), b = others.unsqueeze(0);
  const at::Tensor sides =
      (at::minimum(last_of(a), last_of(b)) - at::maximum(first_of(a), first_of(b))).clamp_min(0);
  const at::Tensor shared = sides.prod(-1);
  const at::Tensor either = box_volumes(a) + box_volumes(b) - shared;
  return at::where(either > 0, shared / either, at::zeros_like(shared));
}

at::Tensor nms(const at::Tensor& boxes,
               const at::Tensor& scores,
               const at::Tensor& classes,
               double iou_threshold) {
  const at::Tensor order = std::get<1>(scores.cpu().sort(/*stable=*/true, 0, /*descending=*/true));
  const at::Tensor corners = boxes.cpu().to(at::kFloat).index_select(0, order).contiguous();
  const at::Tensor kinds = classes.cpu().to(at::kLong).index_select(0, order).contiguous();
  const auto* const box = corners.const_data_ptr<float>();
  const auto* const kind = kinds.const_data_ptr<int64_t>();
  const auto* const number = order.const_data_ptr<int64_t>();
  const int64_t dims = corners.size(1) / 2;
  const auto volume = [dims](const float* b) {
    float product = 1;
    for (int64_t d = 0; d < dims; ++d) product *= b[dims + d] - b[d];
    return product;
  };
  std::vector<int64_t> kept, stays;  // by place in `order`, and by number
  for (int64_t i = 0; i < order.size(0); ++i) {
    const float* const one = box + 2 * dims * i;
    const bool is_covered = std::ranges::any_of(kept, [&](int64_t k) {
      if (kind[k] != kind[i]) return false;
      const float* const other = box + 2 * dims * k;
      float shared = 1;
      for (int64_t d = 0; d < dims; ++d) {
        const float side = std::min(one[dims + d], other[dims + d]) - std::max(one[d], other[d]);
        if (side <= 0) return false;
        shared *= side;
      }
      return static_cast<double>(shared / (volume(one) + volume(other) - shared)) > iou_threshold;
    });
    if (is_covered) continue;
    kept.push_back(i);
    stays.push_back(number[i]);
  }
  return at::tensor(stays, at::TensorOptions(at::kLong));
}

at::Tensor clip_boxes(const at::Tensor& corners, const std::vector<int64_t>& size) {
  return at::minimum(corners.clamp_min(0), by_column(size, corners.options()));
}

at::Tensor shift_boxes(const at::Tensor& corners, const std::vector<int64_t>& by) {
  return corners + by_column(by, corners.options());
}

at::Tensor scale_boxes(const at::Tensor& corners, const std::vector<double>& factors) {
  const at::Tensor exact = corners.to(at::kDouble);
  return (exact * by_column(factors, exact.options())).to(at::kFloat);
}

}  // namespace cytra::ops
