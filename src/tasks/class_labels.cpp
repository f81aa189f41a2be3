#include "tasks/class_labels.h"

#include <cmath>
#include <limits>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sample/same_grid.h"
#include "data/survey/target_facts.h"
#include "ops/labels/components.h"
#include "tasks/head.h"

namespace cytra::tasks {
namespace {

constexpr float kWhole = 8388608;  // from here on every float32 is a whole number

/// Whether a value is a whole number from 0 to `largest`; false for NaN.
inline bool is_label(float value, float largest) {
  const float bounded = value > 0 ? (value < kWhole ? value : kWhole) : 0;
  const bool is_whole = static_cast<float>(static_cast<int32_t>(bounded)) == bounded;
  return value >= 0 && value <= largest && is_whole;
}

struct Scan {
  int64_t wrong = 0, beyond_one = 0;
};

Scan scan(const float* values, int64_t count, float largest) {
  Scan found;
  for (int64_t i = 0; i < count; ++i) {
    found.wrong += is_label(values[i], largest) ? 0 : 1;
    found.beyond_one += values[i] > 1 ? 1 : 0;
  }
  return found;
}

/// The first wrong values, each once.
std::string some_of(const float* values, int64_t count, float largest) {
  constexpr std::size_t kMost = 5;
  std::set<std::string> found;
  for (int64_t i = 0; i < count && found.size() < kMost; ++i) {
    if (!is_label(values[i], largest)) found.insert(fmt::format("{:g}", values[i]));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

/// 0xff0000 for "#ff0000".
int64_t code_of(const std::string& colour) {
  const bool is_code = colour.size() == 7 && colour[0] == '#' &&
                       colour.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
  if (!is_code) {
    throw ConfigError("colours: '{}', expected red, green and blue in hexadecimal as '#ff8000'",
                      colour);
  }
  return std::stoll(colour.substr(1), nullptr, 16);
}

}  // namespace

/// The target_values as class numbers; for a mask, the second one is the mask.
at::Tensor ClassLabels::numbered(const at::Tensor& values, const at::Tensor& ignored) const {
  at::Tensor labels = at::full_like(values, std::nan(""));
  for (std::size_t k = 0; k < target_values.size(); ++k)
    labels.masked_fill_(values.eq(target_values[k]), static_cast<double>(k));
  if (ignored.defined()) labels.masked_fill_(ignored, 0);
  const at::Tensor others = labels.isnan();
  if (!others.any().item<bool>()) return labels;
  throw DataError("{} of {} values are not among target_values=[{}]{} ({:g} is one)",
                  others.sum().item<int64_t>(),
                  values.numel(),
                  fmt::join(target_values, ", "),
                  ignore_index ? " nor ignore_index" : "",
                  values.masked_select(others)[0].item<double>());
}

/// Class numbers of colours.
at::Tensor ClassLabels::painted(const at::Tensor& values) const {
  if (values.size(0) != 3 && values.size(0) != 4)
    throw DataError("a target of {} channels, but task.colours needs 3 (RGB)", values.size(0));
  at::Tensor labels = at::full_like(values.slice(0, 0, 1), -1);
  for (std::size_t k = 0; k < colours.size(); ++k) {
    const int64_t rgb = code_of(colours[k]);
    const at::Tensor is_colour = values[0]
                                     .eq(rgb >> 16)
                                     .logical_and(values[1].eq((rgb >> 8) & 255))
                                     .logical_and(values[2].eq(rgb & 255));
    labels[0].masked_fill_(is_colour, static_cast<double>(k));
  }
  const at::Tensor others = labels[0].lt(0).nonzero();
  if (others.size(0) == 0) return labels;
  at::Tensor pixel = values;
  for (int64_t d = 0; d < others.size(1); ++d)
    pixel = pixel.select(1, others[0][d].item<int64_t>());
  throw DataError("{} of {} pixels have none of task.colours=[{}] (#{:02x}{:02x}{:02x} is one)",
                  others.size(0),
                  labels.numel(),
                  fmt::join(colours, ", "),
                  pixel[0].item<int64_t>(),
                  pixel[1].item<int64_t>(),
                  pixel[2].item<int64_t>());
}

void ClassLabels::check() const {
  const std::size_t expected = are_exclusive() ? static_cast<std::size_t>(num_classes) : 2;
  if (!colours.empty() + !target_values.empty() + target_threshold.has_value() > 1) {
    throw ConfigError(
        "target_values, target_threshold, colours: expected only one of them, as each says what "
        "all values mean");
  }
  if (target_threshold && are_exclusive()) {
    throw ConfigError(
        "target_threshold: makes a mask, but num_classes={} ({})", num_classes, text());
  }
  for (const std::string& colour : colours) code_of(colour);
  if (!colours.empty() && (multilabel || colours.size() != expected)) {
    throw ConfigError("colours: there are {}, but num_classes={} ({}) takes {}",
                      colours.size(),
                      num_classes,
                      text(),
                      multilabel ? "none" : std::to_string(expected));
  }
  if (target_values.empty() || target_values.size() == expected) return;
  throw ConfigError("target_values: {} values, but num_classes={} ({}) takes {}",
                    target_values.size(),
                    num_classes,
                    text(),
                    expected);
}

std::string ClassLabels::text() const {
  if (num_classes == 1 && !multilabel) return "one mask";
  return fmt::format(
      "{} {}", num_classes, multilabel ? "masks" : "classes that exclude each other");
}

at::Tensor ClassLabels::target(const at::Tensor& given) const {
  // A ColourClassesd, where padding would have none of the colours, has made class numbers of them.
  const bool is_painted = !colours.empty() && (given.size(0) > 1 || colours[0] == "#000000");
  const at::Tensor values = is_painted   ? painted(given)
                            : multilabel ? given
                                         : data::without_equal_channels(given);
  const int64_t channels = are_exclusive() ? 1 : num_classes;
  if (values.size(0) != channels) {
    throw DataError("a target of {} channels; num_classes={} ({}) takes {}{}",
                    values.size(0),
                    num_classes,
                    text(),
                    are_exclusive() ? "class numbers in one channel" : fmt::format("{}", channels),
                    values.size(0) > 1 && !multilabel
                        ? fmt::format("; a mask in each channel: num_classes={} multilabel=true; "
                                      "colours: task.colours, as `train --check-data` tells",
                                      values.size(0))
                        : "");
  }
  at::Tensor labels = values.to(at::kFloat).contiguous();
  at::Tensor ignored;
  if (ignore_index) labels = labels.masked_fill(ignored = labels.eq(*ignore_index), 0);
  if (!target_values.empty()) labels = numbered(labels, ignored);
  if (target_threshold) labels = labels.gt(*target_threshold).to(at::kFloat);
  const float* data = labels.const_data_ptr<float>();
  const float largest =
      are_exclusive() ? static_cast<float>(num_classes - 1) : std::numeric_limits<float>::max();
  const Scan found = scan(data, labels.numel(), largest);
  if (found.wrong > 0) {
    throw DataError(
        "{} of {} values are not labels ({}); num_classes={} ({}) takes whole numbers {}{}{}",
        found.wrong,
        labels.numel(),
        some_of(data, labels.numel(), largest),
        num_classes,
        text(),
        are_exclusive() ? fmt::format("0..{}", num_classes - 1) : "from 0 on",
        ignore_index ? "" : "; a value that does not count: ignore_index",
        labels.min().item<double>() < 0
            ? "; where it is the background, target_values begins with it"
            : "");
  }
  if (!are_exclusive() && found.beyond_one > 0) labels = labels.ne(0).to(at::kFloat);
  return ignore_index ? labels.masked_fill(ignored, static_cast<double>(kIgnored)) : labels;
}

at::Tensor ClassLabels::target_of(data::Sample& sample,
                                  const std::string& y_key,
                                  const std::string& x_key) const {
  data::expect_same_grid(sample, y_key, x_key);
  const at::Tensor& values = sample.at(y_key);
  const std::vector<int64_t> size = values.sizes().slice(1).vec(), expected = sample.size(x_key);
  try {
    if (size != expected) {
      throw DataError(
          "a target of ({}), its image has ({})", fmt::join(size, ","), fmt::join(expected, ","));
    }
    return target(values);
  } catch (const DataError& error) {
    throw DataError(sample.file_of(y_key) + ": " + error.what());
  }
}

config::Node ClassLabels::metrics(config::Node given) const {
  if (given.is_null())
    given = config::parse_yaml("{dice: {_target_: DiceMetric}}", "ClassLabels::metrics()");
  // Masks that may overlap have no background: the first one counts like any other.
  const config::Node background = config::Node::make_boolean(!are_exclusive());
  for (auto& [name, metric] : given.map)
    fit_options(metric,
                metrics::Metric::kKind,
                {{"include_background", background}, {"multilabel", background}});
  return given;
}

config::Node ClassLabels::decoder() const {
  return config::parse_yaml(
      fmt::format(
          "{{_target_: ClassDecoder, num_classes: {}, multilabel: {}}}", num_classes, multilabel),
      "ClassLabels");
}

at::Tensor ClassLabels::known(const at::Tensor& labels) const {
  return ignore_index ? labels.ne(kIgnored).all(1, /*keepdim=*/true) : at::Tensor();
}

at::Tensor ClassLabels::one_hot(const at::Tensor& labels) const {
  if (!are_exclusive()) return ignore_index ? labels.clamp_min(0) : labels;
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[1] = num_classes;
  return labels.eq(at::arange(num_classes, labels.options()).view(shape));
}

at::Tensor ClassLabels::flattened(const at::Tensor& labels) const {
  if (are_exclusive() || num_classes == 1) return labels.clamp_min(0);
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[1] = num_classes;
  const at::Tensor numbers =
      at::arange(1, num_classes + 1, labels.options().dtype(at::kLong)).view(shape);
  return (numbers * labels.gt(0)).amax(1, /*keepdim=*/true);
}

metrics::Compared ClassLabels::compared(const at::Tensor& prediction,
                                        const at::Tensor& truth,
                                        metrics::Metric::Input input) const {
  using Input = metrics::Metric::Input;
  if (input == Input::masks) return {one_hot(prediction), one_hot(truth), known(truth)};
  if (input == Input::probabilities) return {prediction, one_hot(truth), known(truth)};
  const auto objects = [this](const at::Tensor& labels) {
    std::vector<at::Tensor> images;
    for (const at::Tensor& one : flattened(labels).select(1, 0).cpu().unbind(0))
      images.push_back(ops::connected_components(one, 0).labels);
    return at::stack(images).unsqueeze(1);
  };
  return {objects(prediction), objects(truth), known(truth)};
}

at::Tensor ClassLabels::count(const at::Tensor& truth) const {
  const at::Tensor classes = one_hot(truth).ne(0).flatten(2).any(2);  // (N,K)
  const at::Tensor foreground = classes.slice(1, are_exclusive() ? 1 : 0).any(1);
  const at::Tensor images = at::full({1}, truth.size(0), classes.options().dtype(at::kDouble));
  return at::cat({images, foreground.sum().view({1}), classes.sum(0)});
}

std::string ClassLabels::what_is_missing(const at::Tensor& counts) const {
  const at::Tensor host = counts.to(at::kCPU, at::kDouble).contiguous();
  const double *numbers = host.const_data_ptr<double>(), *classes = numbers + 2;
  const auto images = static_cast<int64_t>(numbers[0]);
  if (images == 0) return "";
  std::string text;
  if (numbers[1] < numbers[0]) {
    text = fmt::format("{} of {} images have a target without foreground and do not count in dice",
                       images - static_cast<int64_t>(numbers[1]),
                       images);
  }
  std::vector<int64_t> unseen;
  for (int64_t k = are_exclusive() ? 1 : 0; num_classes > 1 && k < num_classes; ++k) {
    if (classes[k] == 0) unseen.push_back(k);
  }
  if (!unseen.empty()) {
    text += fmt::format("{}no target of {} images has class {}",
                        text.empty() ? "" : "; ",
                        images,
                        fmt::join(unseen, ", "));
  }
  return text;
}

ClassLabels class_labels_of(const config::Node& task) {
  const config::Node* channels = task.find("model.out_channels");
  const bool is_known = channels != nullptr && !channels->is_null();
  const int64_t outputs = is_known ? channels->as<int64_t>() : 1;
  ClassLabels labels{task.get<int64_t>("num_classes", outputs),
                     task.get<bool>("multilabel", false)};
  const config::Node* ignored = task.find("ignore_index");
  if (ignored != nullptr && !ignored->is_null()) labels.ignore_index = ignored->as<int64_t>();
  const config::Node* mask = task.find("mask_key");
  if (mask != nullptr && !mask->is_null() && !labels.ignore_index)
    labels.ignore_index = ClassLabels::kIgnored;
  labels.target_values = task.get<std::vector<int64_t>>("target_values", {});
  labels.colours = task.get<std::vector<std::string>>("colours", {});
  const config::Node* threshold = task.find("target_threshold");
  if (threshold != nullptr && !threshold->is_null())
    labels.target_threshold = threshold->as<double>();
  labels.check();
  if (is_known && outputs != labels.num_classes) {
    throw ConfigError(
        "{}: out_channels={}, but num_classes={} ({}): set num_classes={}, for masks that may "
        "overlap with multilabel=true, and leave out_channels to it",
        channels->where(),
        outputs,
        labels.num_classes,
        labels.text(),
        outputs);
  }
  return labels;
}

}  // namespace cytra::tasks
