#include "tasks/instances/labels.h"

#include <atomic>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/log.h"
#include "ops/components.h"

namespace cytra::tasks {

void renumber_large_labels(data::Sample& sample, const std::string& y_key) {
  at::Tensor& stored = sample.stored(y_key);
  if (!at::isIntegralType(stored.scalar_type(), false) || stored.element_size() < 4) return;
  const at::Tensor numbers = stored.to(at::kLong);
  if (numbers.numel() == 0 || numbers.max().item<int64_t>() < (1 << 24)) return;
  const auto [values, places] = at::_unique(numbers, /*sorted=*/true, /*return_inverse=*/true);
  stored = (places + (values[0].item<int64_t>() == 0 ? 0 : 1)).to(at::kInt);
}

int64_t pieces_of_mask(const at::Tensor& labels) {
  constexpr int64_t kPieces = 4;  // an object that a crop has cut may have two
  if (labels.numel() == 0) return 0;
  const double number = labels.max().item<double>();
  if (number <= 0 || labels.gt(0).logical_and(labels.ne(number)).any().item<bool>()) return 0;
  const at::Tensor object = labels[0].eq(number).to(at::kCPU, at::kInt);
  const int64_t pieces = ops::connected_components(object, object.dim()).count;
  return pieces < kPieces ? 0 : pieces;
}

void doubt_masks(const at::Tensor& labels, const std::string& path) {
  static std::atomic<bool> is_told = false;
  if (is_told) return;
  const int64_t pieces = pieces_of_mask(labels);
  if (pieces == 0 || is_told.exchange(true)) return;
  log::warn(
      "{}: one object of {} separate pieces; if this is a mask, give each object a number of its "
      "own, as connected components do (skimage.measure.label)",
      path,
      pieces);
}

std::string words_for_no_objects(const std::string& y_key) {
  return fmt::format(
      "no object in the images of this validation, so its scores are nan: '{}' is 0 everywhere, or "
      "all objects are too small to count",
      y_key);
}

}  // namespace cytra::tasks
