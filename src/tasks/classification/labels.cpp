#include "tasks/classification/labels.h"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "data/sample.h"

namespace cytra::tasks {

void ImageLabels::check() const {
  const std::size_t named = class_names.size();
  if (named > 0 && static_cast<int64_t>(named) != num_classes) {
    throw ConfigError(
        fmt::format("class_names: {} names, expected num_classes={}", named, num_classes));
  }
  if (std::set<std::string>(class_names.begin(), class_names.end()).size() < named)
    throw ConfigError(
        fmt::format("class_names: [{}], expected each once", fmt::join(class_names, ", ")));
}

std::string ImageLabels::name_of(int64_t number) const {
  return class_names.empty() ? std::to_string(number)
                             : class_names.at(static_cast<std::size_t>(number));
}

int64_t ImageLabels::number_of(const data::Sample& sample, const std::string& y_key) const {
  const auto cell = sample.columns.find(y_key);
  if (cell == sample.columns.end()) {
    throw DataError(
        fmt::format("{}: no class: expected a column '{}' with words or numbers, which "
                    "data.columns names",
                    sample.id,
                    y_key));
  }
  const std::string word = trim(cell->second);
  for (int64_t number = 0; number < num_classes; ++number)
    if (word == name_of(number)) return number;
  throw DataError(fmt::format(
      "{}: '{}' is '{}', expected {}{}",
      sample.id,
      y_key,
      printable(word),
      class_names.empty()
          ? fmt::format("0..{}; class_names tells which words there are", num_classes - 1)
          : fmt::format("one of {}", fmt::join(class_names, ", ")),
      suggestion(word, class_names)));
}

metrics::Compared ImageLabels::compared(const at::Tensor& prediction,
                                        const at::Tensor& truth) const {
  std::vector<int64_t> shape(static_cast<std::size_t>(truth.dim()), 1);
  shape[1] = num_classes;
  const auto one_hot = [&](const at::Tensor& numbers) {
    return numbers.eq(at::arange(num_classes, truth.options()).view(shape));
  };
  return {one_hot(prediction), one_hot(truth)};
}

ImageLabels image_labels_of(const config::Node& task) {
  return {task.get<int64_t>("num_classes", task.get<int64_t>("model.out_channels", 2)),
          task.get<std::vector<std::string>>("class_names", {})};
}

}  // namespace cytra::tasks
