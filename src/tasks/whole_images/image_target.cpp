#include "tasks/whole_images/image_target.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/schema.h"
#include "data/sample/sample.h"
#include "io/csv.h"
#include "tasks/head.h"
#include "tasks/suited.h"

namespace cytra::tasks {
namespace {

using Input = metrics::Metric::Input;

[[noreturn]] void throw_bad_cell(const data::Sample& sample,
                                 const std::string& column,
                                 const std::string& cell,
                                 const std::string& expected) {
  throw DataError(
      "{}: '{}' is '{}', expected {}", sample.id, column, printable(cell, 80), expected);
}

}  // namespace

void ImageTarget::check() const {
  const std::size_t named = names.size();
  if (named > 0 && static_cast<int64_t>(named) != count)
    throw ConfigError("class_names: {} names, expected num_classes={}", named, count);
  for (const auto* texts : {&names, &columns}) {
    if (std::set<std::string>(texts->begin(), texts->end()).size() < texts->size()) {
      throw ConfigError("{}: [{}], expected each once",
                        texts == &names ? "class_names" : "columns",
                        fmt::join(*texts, ", "));
    }
  }
}

std::string ImageTarget::name_of(int64_t number) const {
  return names.empty() ? std::to_string(number) : names.at(static_cast<std::size_t>(number));
}

std::vector<double> ImageTarget::of(const data::Sample& sample) const {
  std::vector<double> numbers;
  for (const std::string& column : columns) {
    const auto found = sample.columns.find(column);
    if (found == sample.columns.end()) {
      throw DataError("{}: no '{}': expected a column of this name with {}, among data.columns",
                      sample.id,
                      column,
                      kind == Kind::classes ? "words or numbers" : "numbers");
    }
    const std::string cell = trim(found->second);
    double number = 0;
    const bool is_number = io::read_number(cell, number) && std::isfinite(number);
    if (kind == Kind::values) {
      if (!is_number) throw_bad_cell(sample, column, cell, "a number");
    } else if (kind == Kind::labels) {
      if (cell == "True" || cell == "true") {
        number = 1;
      } else if (cell != "False" && cell != "false" &&
                 (!is_number || (number != 0 && number != 1))) {
        throw_bad_cell(sample, column, cell, "0 or 1");
      }
    } else if (names.empty()) {
      if (!is_number || number < 0 || number != std::floor(number) ||
          number >= static_cast<double>(count)) {
        throw_bad_cell(sample,
                       column,
                       cell,
                       fmt::format("0 to {}; class_names tells which words there are", count - 1));
      }
    } else {
      const auto name = std::ranges::find(names, cell);
      if (name == names.end()) {
        throw_bad_cell(
            sample,
            column,
            cell,
            fmt::format(
                "one of class_names: {}{}", fmt::join(names, ", "), suggestion(cell, names)));
      }
      number = static_cast<double>(name - names.begin());
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<Input> ImageTarget::inputs() const {
  if (kind == Kind::values) return {Input::values};
  return {Input::masks, Input::values, Input::probabilities};
}

config::Node ImageTarget::metrics(config::Node given) const {
  if (given.is_null()) {
    given = config::parse_yaml(
        kind == Kind::values ? "{}" : "{accuracy: {_target_: MulticlassAccuracy, average: micro}}",
        "ImageTarget::metrics()");
  }
  const config::Node are_labels = config::Node::make_boolean(kind == Kind::labels);
  for (auto& [name, metric] : given.map)
    fit_options(metric, metrics::Metric::kKind, {{"multilabel", are_labels}});
  return given;
}

at::Tensor ImageTarget::one_hot(const at::Tensor& target) const {
  if (kind != Kind::classes || target.size(1) != 1) return target;
  std::vector<int64_t> shape(static_cast<std::size_t>(target.dim()), 1);
  shape[1] = count;
  return target.eq(at::arange(count, target.options()).view(shape)).to(at::kFloat);
}

metrics::Compared ImageTarget::compared(const at::Tensor& result,
                                        const at::Tensor& target,
                                        Input input) const {
  const at::Tensor truth = one_hot(target.to(at::kFloat));
  if (input != Input::masks) return {result, truth};
  const at::Tensor found = kind == Kind::labels
                               ? result.gt(0.5).to(at::kFloat)
                               : one_hot(result.argmax(1, /*keepdim=*/true).to(at::kFloat));
  return {found, truth};
}

std::string ImageTarget::text_of(const at::Tensor& result) const {
  if (kind == Kind::classes) return name_of(result.argmax().item<int64_t>());
  std::vector<std::string> parts;
  for (int64_t k = 0; k < result.numel(); ++k) {
    const double value = result[k].item<double>();
    if (kind == Kind::values) parts.push_back(fmt::format("{:.4g}", value));
    if (kind == Kind::labels && value > 0.5) parts.push_back(name_of(k));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

bool is_of_whole_images(const config::Node& task) {
  const std::string_view target = target_of(task);
  return target == kClassOfImage || target == kValuesOfImage;
}

ImageTarget image_target_of(const config::Node& task) {
  using Texts = std::vector<std::string>;
  ImageTarget target;
  const bool has_values = target_of(task) == kValuesOfImage;
  target.columns = {task.get<std::string>("y_key", has_values ? "value" : "label")};
  if (has_values) {
    target.kind = ImageTarget::Kind::values;
    if (const auto columns = task.get<Texts>("columns", {}); !columns.empty())
      target.columns = columns;
    target.names = target.columns;
    target.count = std::ssize(target.names);
    return target;
  }
  target.names = task.get<Texts>("class_names", {});
  const config::Node* classes = task.find_direct("num_classes");
  target.count = classes != nullptr && !classes->is_null()
                     ? classes->as<int64_t>()
                     : task.get<int64_t>("model.out_channels", 2);
  if (task.get<bool>("multilabel", false)) {
    target.kind = ImageTarget::Kind::labels;
    target.columns = target.names;
  }
  return target;
}

}  // namespace cytra::tasks
