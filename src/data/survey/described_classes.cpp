#include "data/survey/described_classes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

namespace cytra::data {
namespace {

void follow_channels(const DatasetDescription& description, bool& is_ct) {
  std::vector<std::string> others;
  std::size_t cts = 0;
  for (const std::string& name : description.channels) {
    const std::string lower = in_small_letters(name);
    cts += lower == "ct";
    if (lower == "nonorm" || lower == "rescale_to_0_1" || lower == "rgb_to_0_1")
      others.push_back(name);
  }
  if (description.channels.empty()) return;
  is_ct = cts == description.channels.size();
  if (cts > 0 && !is_ct) others.emplace_back("CT beside others");
  if (others.empty()) return;
  log::warn(
      "{}: the normalisation of {} is not planned: each channel of each image gets mean 0 and "
      "deviation 1; for another one, change data.transforms of the plan's experiment",
      description.place,
      fmt::join(others, ", "));
}

void follow_labels(const DatasetDescription& description, std::vector<ClassFacts>& labels) {
  std::vector<int64_t> unnamed;
  std::erase_if(labels, [&](const auto& one) { return one.value == description.ignored; });
  for (const ClassFacts& label : labels) {
    if (description.labels.count(label.value) == 0) unnamed.push_back(label.value);
  }
  if (!unnamed.empty()) {
    throw ConfigError(
        "plan: the targets have the values {}, which labels of {} do not name; add them there, or "
        "correct the targets",
        fmt::join(unnamed, ", "),
        description.place);
  }
  for (const auto& [value, name] : description.labels) {
    const auto place = std::ranges::find_if(
        labels, [value = value](const ClassFacts& one) { return one.value >= value; });
    if (place != labels.end() && place->value == value) continue;
    log::warn("{}: no image has the label {} ({})", description.place, value, name);
    labels.insert(place, {value, 0, 0});
  }
}

}  // namespace

void follow(const DatasetDescription& description, std::vector<ClassFacts>& labels, bool& is_ct) {
  follow_channels(description, is_ct);
  if (!description.regions.empty()) {
    throw ConfigError(
        "{}: labels.{} are regions of several values, which --plan does not support; give each "
        "value one name, as {{\"background\": 0, \"edema\": 1, \"core\": 2}}",
        description.place,
        fmt::join(description.regions, ", labels."));
  }
  if (!labels.empty() && !description.labels.empty()) follow_labels(description, labels);
}

int64_t classes_of(const std::vector<ClassFacts>& labels, std::string& why) {
  if (labels.empty()) {
    throw ConfigError(
        "plan: the targets are not images of classes (whole numbers, 64 at most), which --plan "
        "needs, but perhaps instances or intensities; set num_classes=1 to tell objects from "
        "background");
  }
  std::vector<std::string> values;
  for (const ClassFacts& label : labels) values.push_back(std::to_string(label.value));
  const int64_t lowest = labels.front().value, highest = labels.back().value;
  if (lowest < 0)
    throw ConfigError("plan: the targets have the label {}, expected 0 or more", lowest);
  if (highest >= 2 * std::ssize(labels)) {
    throw ConfigError(
        "plan: the targets hold {} labels up to {}, as for objects that are told apart, which "
        "--plan does not support here; set num_classes=1 to tell them from the background, "
        "num_classes={} if these are classes",
        labels.size(),
        highest,
        highest + 1);
  }
  why = fmt::format("Targets hold the labels {}: {}.",
                    join(values, ", "),
                    labels.size() <= 2 ? "a mask of what is not 0" : "classes");
  return labels.size() <= 2 ? 1 : highest + 1;
}

}  // namespace cytra::data
