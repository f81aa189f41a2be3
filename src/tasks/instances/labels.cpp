#include "tasks/instances/labels.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace cytra::tasks {

void renumber_large_labels(data::Sample& sample, const std::string& y_key) {
  at::Tensor& stored = sample.stored(y_key);
  if (!at::isIntegralType(stored.scalar_type(), false) || stored.element_size() < 4) return;
  const at::Tensor numbers = stored.to(at::kLong);
  if (numbers.numel() == 0 || numbers.max().item<int64_t>() < (1 << 24)) return;
  const auto [values, places] = at::_unique(numbers, /*sorted=*/true, /*return_inverse=*/true);
  stored = (places + (values[0].item<int64_t>() == 0 ? 0 : 1)).to(at::kInt);
}

data::TargetMeaning meaning_of_objects(const std::string& x_key,
                                       const std::string& y_key,
                                       std::optional<int64_t> ignore_index) {
  data::TargetMeaning meaning;
  meaning.kind = data::TargetMeaning::Kind::objects;
  meaning.key = y_key;
  meaning.image_key = x_key;
  meaning.ignore_index = ignore_index;
  return meaning;
}

std::string words_for_no_objects(const std::string& y_key) {
  return fmt::format(
      "no object in the images of this validation, so its scores say nothing: '{}' is 0 "
      "everywhere, or "
      "all objects are too small to count",
      y_key);
}

}  // namespace cytra::tasks
