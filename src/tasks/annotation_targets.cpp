#include "tasks/annotation_targets.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/transforms/load_image.h"
#include "tasks/suited.h"
#include "training/class_in_metric.h"

namespace cytra::tasks {
namespace {

using config::Node;
using io::TargetKind;

/// What a task, or one of its heads, needs from annotations.
struct Need {
  std::string key;
  TargetKind kind;
  int64_t classes = 0;  // to tell apart; 0: none
};

std::string text_at(const Node& node, const char* key, const char* otherwise = "") {
  const Node* value = node.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as<std::string>();
}

std::vector<Need> needs_of(const Node& task) {
  const std::string_view target = target_of(task);
  const std::string y_key = text_at(task, "y_key", target == kBoxes ? "instances" : "seg");
  std::vector<Need> needs;
  if (target == kClasses) {
    const ClassLabels labels = class_labels_of(task);
    needs.push_back({y_key,
                     labels.multilabel        ? TargetKind::channels
                     : labels.num_classes > 1 ? TargetKind::classes
                                              : TargetKind::mask,
                     labels.num_classes > 1 ? labels.num_classes - first_class(labels) : 0});
  } else if (target == kObjects) {
    needs.push_back({y_key, TargetKind::instances});
  } else if (target == kBoxes) {
    const Node* classes = task.find("model.num_classes");
    const int64_t count = classes == nullptr || classes->is_null() ? 1 : classes->as<int64_t>();
    needs.push_back({y_key, TargetKind::boxes, count > 1 ? count : 0});
  }
  const std::string mask_key = text_at(task, "mask_key");
  if (!mask_key.empty()) needs.push_back({mask_key, TargetKind::mask});
  return needs;
}

std::vector<std::string> names_in(const Node& task) {
  const Node* names = task.find_direct("class_names");
  std::vector<std::string> result;
  if (names == nullptr) return result;
  for (const Node& name : names->list) result.push_back(name.as<std::string>());
  return result;
}

void add_targets(const Node& task, std::map<std::string, data::AnnotationTarget>& targets) {
  for (const Need& need : needs_of(task))
    targets[need.key] = {need.kind, need.classes > 0 ? names_in(task) : std::vector<std::string>()};
}

/// The configurations of the heads, or of a task that is its only one.
void for_heads(Node& task, const auto& action) {
  Node* heads = task.find_direct("heads");
  if (heads == nullptr || !heads->is_map()) return action(task);
  for (auto& [name, head] : heads->map)
    if (head.is_map()) action(head);
}

/// `by_key`: the files of annotations.
void name_classes(const std::map<std::string, std::vector<std::string>>& by_key, Node& task) {
  for (const Need& need : needs_of(task)) {
    const auto known = by_key.find(need.key);
    if (known == by_key.end()) continue;
    const Node* mask = task.find_direct("object_values");
    if (mask != nullptr && !mask->list.empty()) {
      throw ConfigError(
          "task.object_values is for masks, but '" + need.key +
          "' has annotations, which tell objects apart; leave task.object_values out");
    }
    if (need.kind == TargetKind::instances) continue;
    const std::vector<std::string>& files = known->second;
    std::vector<std::string> names = names_in(task);
    const bool is_given = !names.empty();
    if (!is_given) names = io::class_names_of(files);
    const auto count = std::ssize(names);
    const int64_t background = need.kind == TargetKind::classes ? 1 : 0;
    const bool is_single = need.kind == TargetKind::boxes && need.classes == 0 && count == 1;
    if (need.classes == 0 && !is_single) {
      if (count > 1) {
        log::info("{}: the classes {} are learned as one; num_classes={} tells them apart",
                  need.key,
                  fmt::join(names, ", "),
                  count + (need.kind == TargetKind::mask ? 1 : 0));
      }
      continue;
    }
    if (!is_single && count != need.classes) {
      throw ConfigError(
          "num_classes={}{}, but {} {} {} class{}: {}; set num_classes={}",
          need.classes + background,
          background > 0 ? fmt::format(" (the background and {} more)", need.classes) : "",
          is_given ? "class_names" : "the annotations of '" + need.key + "'",
          is_given ? "are" : "have",
          count,
          count == 1 ? "" : "es",
          fmt::join(names, ", "),
          count + background);
    }
    if (is_given) continue;
    task.set("class_names", Node::make_list(names));
    log::info("class_names: {} ({} annotation files)", fmt::join(names, ", "), files.size());
  }
}

/// Sets what annotations become in a LoadImaged that leaves this open.
void tell_loader(const std::map<std::string, data::AnnotationTarget>& targets, Node& transform) {
  const Node* open = transform.is_map() ? transform.find_direct("annotations") : nullptr;
  if (open != nullptr && !open->is_null()) return;
  Node kinds = Node::make_map(), names = Node::make_map();
  for (const std::string& key : data::loaded_keys(transform)) {
    const auto found = targets.find(key);
    if (found == targets.end()) continue;
    const data::AnnotationTarget& target = found->second;
    kinds.set(key, Node::make_string(io::kTargetKinds[static_cast<std::size_t>(target.kind)]));
    if (!target.class_names.empty()) names.set(key, Node::make_list(target.class_names));
  }
  if (kinds.map.empty()) return;
  transform.set("annotations", std::move(kinds));
  if (!names.map.empty()) transform.set("class_names", std::move(names));
}

}  // namespace

std::map<std::string, data::AnnotationTarget> annotation_targets(const Node& task) {
  std::map<std::string, data::AnnotationTarget> targets;
  Node copy = task;
  for_heads(copy, [&](const Node& head) { add_targets(head, targets); });
  return targets;
}

bool fit_to_annotations(Node& data, Node& task) {
  const auto by_key = data::annotation_files(*make<data::DataModule>(data));
  if (by_key.empty()) return false;
  for_heads(task, [&](Node& head) { name_classes(by_key, head); });
  const auto targets = annotation_targets(task);
  for (const char* split : {"train", "valid", "test", "predict"}) {
    Node* list = data.find("transforms." + std::string(split));
    if (list == nullptr || list->is_null()) continue;
    for (Node& transform : list->list) tell_loader(targets, transform);
  }
  return true;
}

std::map<std::string, double> with_class_names(const std::map<std::string, double>& values,
                                               const std::vector<std::string>& names,
                                               int64_t first) {
  constexpr std::string_view kClass = "_class_";
  std::map<std::string, double> named;
  for (const auto& [key, value] : values) {
    const std::size_t at = key.rfind(kClass);
    const char* number = at == std::string::npos ? "" : key.c_str() + at + kClass.size();
    char* end = nullptr;
    const auto k = static_cast<std::size_t>(std::strtoll(number, &end, 10) - first);
    if (end == number || *end != '\0' || k >= names.size()) {
      named[key] = value;
      continue;
    }
    named[key.substr(0, at + 1) + training::metric_name(names[k])] = value;
  }
  return named;
}

bool has_class_names(const Node& task) {
  return !names_in(task).empty();
}

std::string class_name_of(const Node& task, int64_t number) {
  const std::vector<std::string> names = names_in(task);
  int64_t at = -1;
  if (!names.empty()) {
    const ClassLabels labels = class_labels_of(task);
    const bool is_mask = labels.num_classes == 1 && !labels.multilabel;  // 1: the only class
    at = number - (is_mask ? 1 : first_class(labels));
  }
  return at >= 0 && at < std::ssize(names) ? names[static_cast<std::size_t>(at)]
                                           : fmt::format("class_{}", number);
}

int64_t first_class(const ClassLabels& labels) {
  return labels.are_exclusive() ? 1 : 0;
}

}  // namespace cytra::tasks
