#include "tasks/class_labels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sample.h"

namespace cytra::tasks {
namespace {

constexpr float kWhole = 8388608;  // from here on every float32 is a whole number

/// A whole number from 0 to `largest`? False for NaN.
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

}  // namespace

std::string ClassLabels::text() const {
  if (num_classes == 1 && !multilabel) return "one mask";
  return fmt::format(
      "{} {}", num_classes, multilabel ? "masks" : "classes that exclude each other");
}

at::Tensor ClassLabels::target(const at::Tensor& values) const {
  const int64_t channels = are_exclusive() ? 1 : num_classes;
  if (values.size(0) != channels) {
    throw DataError(
        fmt::format("a target of {} channels; num_classes={} ({}) takes {}{}",
                    values.size(0),
                    num_classes,
                    text(),
                    are_exclusive() ? "class numbers in one channel" : fmt::format("{}", channels),
                    values.size(0) > 1 && !multilabel
                        ? fmt::format("; a mask in each channel: num_classes={} multilabel=true",
                                      values.size(0))
                        : ""));
  }
  const at::Tensor labels = values.to(at::kFloat).contiguous();
  const float* data = labels.const_data_ptr<float>();
  const float largest =
      are_exclusive() ? static_cast<float>(num_classes - 1) : std::numeric_limits<float>::max();
  const Scan found = scan(data, labels.numel(), largest);
  if (found.wrong > 0) {
    throw DataError(
        fmt::format("{} of {} values are no label ({}); num_classes={} ({}) takes whole numbers {}",
                    found.wrong,
                    labels.numel(),
                    some_of(data, labels.numel(), largest),
                    num_classes,
                    text(),
                    are_exclusive() ? fmt::format("0..{}", num_classes - 1) : "from 0 on"));
  }
  return are_exclusive() || found.beyond_one == 0 ? labels : labels.ne(0).to(at::kFloat);
}

at::Tensor ClassLabels::target_of(data::Sample& sample,
                                  const std::string& y_key,
                                  const std::string& x_key) const {
  const at::Tensor& values = sample.at(y_key);
  const std::vector<int64_t> size = values.sizes().slice(1).vec(), expected = sample.size(x_key);
  try {
    if (size != expected) {
      throw DataError(fmt::format(
          "a target of ({}), its image has ({})", fmt::join(size, ","), fmt::join(expected, ",")));
    }
    return target(values);
  } catch (const DataError& error) {
    const auto source = sample.sources.find(y_key);
    const bool has_file = source != sample.sources.end() && !source->second.path.empty();
    throw DataError((has_file ? source->second.path : sample.id) + ": " + error.what());
  }
}

std::shared_ptr<inference::Decoder> ClassLabels::decoder() const {
  const std::string task =
      fmt::format("{{num_classes: {}, multilabel: {}}}", num_classes, multilabel);
  return inference::decoder_of(config::parse_yaml(task, "ClassLabels"));
}

at::Tensor ClassLabels::one_hot(const at::Tensor& labels) const {
  if (!are_exclusive()) return labels;
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[1] = num_classes;
  return labels.eq(at::arange(num_classes, labels.options()).view(shape));
}

at::Tensor ClassLabels::flattened(const at::Tensor& labels) const {
  if (are_exclusive() || num_classes == 1) return labels;
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[1] = num_classes;
  const at::Tensor numbers =
      at::arange(1, num_classes + 1, labels.options().dtype(at::kLong)).view(shape);
  return (numbers * labels.ne(0)).amax(1, /*keepdim=*/true);
}

metrics::Dice ClassLabels::dice() const {
  return metrics::Dice(num_classes, /*include_background=*/!are_exclusive());
}

std::map<std::string, double> ClassLabels::scores(const metrics::Dice& dice) const {
  std::map<std::string, double> scores{{"dice", dice.compute()}};
  if (num_classes == 1) return scores;
  const std::vector<double> classes = dice.per_class();
  for (std::size_t k = are_exclusive() ? 1 : 0; k < classes.size(); ++k)
    scores[fmt::format("dice_class_{}", k)] = classes[k];
  return scores;
}

std::string ClassLabels::what_is_missing(const metrics::Dice& dice) const {
  const metrics::Dice::Counts counts = dice.counts();
  if (counts.images == 0) return "";
  std::string text;
  if (counts.with_foreground < counts.images) {
    text = fmt::format("{} of {} images have a target without foreground and do not count in dice",
                       counts.images - counts.with_foreground,
                       counts.images);
  }
  std::vector<std::size_t> unseen;
  for (std::size_t k = are_exclusive() ? 1 : 0; num_classes > 1 && k < counts.with_class.size();
       ++k) {
    if (counts.with_class[k] == 0) unseen.push_back(k);
  }
  if (!unseen.empty()) {
    text += fmt::format("{}no target of {} images has class {}",
                        text.empty() ? "" : "; ",
                        counts.images,
                        fmt::join(unseen, ", "));
  }
  return text;
}

ClassLabels class_labels_of(const config::Node& task) {
  const config::Node* channels = task.find("model.out_channels");
  const bool is_known = channels != nullptr && !channels->is_null();
  const int64_t outputs = is_known ? channels->as<int64_t>() : 1;
  const ClassLabels labels{task.get<int64_t>("num_classes", outputs),
                           task.get<bool>("multilabel", false)};
  if (is_known && outputs != labels.num_classes) {
    throw ConfigError(fmt::format(
        "{}: out_channels={}, but num_classes={} ({}): set num_classes={}, for masks that may "
        "overlap with multilabel=true, and leave out_channels to it",
        channels->where(),
        outputs,
        labels.num_classes,
        labels.text(),
        outputs));
  }
  return labels;
}

}  // namespace cytra::tasks
