#include "tasks/instances/labels.h"

#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "data/sample/same_grid.h"
#include "data/survey/target_facts.h"

namespace cytra::tasks {
namespace {

/// "": nothing.
std::string what_is_wrong(const at::Tensor& labels,
                          const std::vector<int64_t>& image,
                          std::optional<int64_t> ignore_index) {
  const std::vector<int64_t> size = labels.sizes().slice(1).vec();
  if (labels.size(0) != 1)
    return fmt::format(
        "{} channels, expected one channel of labels: 0 for none, a number for each object; "
        "++task.background=0 takes colours, black for none",
        labels.size(0));
  if (size != image)
    return fmt::format(
        "labels of ({}), their image has ({})", fmt::join(size, ","), fmt::join(image, ","));
  if (labels.ne(labels.round()).any().item<bool>())
    return "labels with fractions, expected whole numbers; resampling needs mode nearest";
  const at::Tensor known = ignore_index ? labels.masked_fill(labels.eq(*ignore_index), 0) : labels;
  if (const auto least = known.min().item<double>(); least < 0) {
    return fmt::format(
        "negative labels, expected 0 for none; where {0:g} is the background, "
        "++task.background={0:g}; "
        "where it means that nothing is known, task.ignore_index={0:g}",
        least);
  }
  return "";
}

}  // namespace

void renumber_large_labels(data::Sample& sample,
                           const std::string& y_key,
                           std::optional<int64_t> ignore_index) {
  at::Tensor& stored = sample.stored(y_key);
  stored = data::without_equal_channels(stored);
  if (!at::isIntegralType(stored.scalar_type(), false) || stored.element_size() < 4) return;
  const at::Tensor numbers = stored.to(at::kLong);
  if (numbers.numel() == 0 || numbers.max().item<int64_t>() < (1 << 24)) return;
  at::Tensor stays = numbers.le(0);
  if (ignore_index) stays = stays.logical_or(numbers.eq(*ignore_index));
  const auto [values, places] =
      at::_unique(numbers.masked_fill(stays, 0), /*sorted=*/true, /*return_inverse=*/true);
  at::Tensor small = places + (values[0].item<int64_t>() == 0 ? 0 : 1);
  if (ignore_index && *ignore_index > 0) small += small.ge(*ignore_index);  // is no object's
  stored = at::where(stays, numbers, small);
}

void prepare_objects(data::Sample& sample,
                     const std::string& y_key,
                     const std::string& x_key,
                     std::optional<int64_t> ignore_index) {
  data::expect_same_grid(sample, y_key, x_key);
  renumber_large_labels(sample, y_key, ignore_index);
  const std::string wrong = what_is_wrong(sample.at(y_key), sample.size(x_key), ignore_index);
  if (!wrong.empty()) throw DataError(sample.file_of(y_key) + ": " + wrong);
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

void NoObjects::warn(const std::string& y_key) {
  if (std::exchange(is_told_, true)) return;
  log::warn(
      "no object in the images of this validation, so its scores say nothing: '{}' is 0 "
      "everywhere, or all objects are too small to count",
      y_key);
}

}  // namespace cytra::tasks
