#include "ops/boxes/nms.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

namespace cytra::ops {

at::Tensor box_iou(const at::Tensor& boxes, const at::Tensor& others) {
  const auto area = [](const at::Tensor& all) {
    return (all.select(1, 2) - all.select(1, 0)) * (all.select(1, 3) - all.select(1, 1));
  };
  const at::Tensor a = boxes.unsqueeze(1), b = others.unsqueeze(0);
  const at::Tensor sides = (at::minimum(a.narrow(2, 2, 2), b.narrow(2, 2, 2)) -
                            at::maximum(a.narrow(2, 0, 2), b.narrow(2, 0, 2)))
                               .clamp_min(0);
  const at::Tensor shared = sides.select(2, 0) * sides.select(2, 1);
  const at::Tensor either = area(boxes).unsqueeze(1) + area(others).unsqueeze(0) - shared;
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
  const auto area = [](const float* b) { return (b[2] - b[0]) * (b[3] - b[1]); };
  std::vector<int64_t> kept, stays;  // by place in `order`, and by number
  for (int64_t i = 0; i < order.size(0); ++i) {
    const float* const one = box + 4 * i;
    const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      if (kind[k] != kind[i]) return false;
      const float* const other = box + 4 * k;
      const float width = std::min(one[2], other[2]) - std::max(one[0], other[0]);
      const float height = std::min(one[3], other[3]) - std::max(one[1], other[1]);
      if (width <= 0 || height <= 0) return false;
      const float shared = width * height;
      return static_cast<double>(shared / (area(one) + area(other) - shared)) > iou_threshold;
    });
    if (is_covered) continue;
    kept.push_back(i);
    stays.push_back(number[i]);
  }
  return at::tensor(stays, at::TensorOptions(at::kLong));
}

}  // namespace cytra::ops
