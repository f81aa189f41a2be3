#include "tasks/object_values.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample/per_key.h"
#include "data/transforms/load_image.h"
#include "tasks/class_labels.h"

namespace cytra::tasks {
namespace {

using config::Kind;
using config::Node;

bool loads(const Node& transform, const std::string& key) {
  const std::vector<std::string> keys = data::loaded_keys(transform);
  return std::ranges::find(keys, key) != keys.end();
}

bool numbers(const Node& transform, const std::string& target, const std::string& key) {
  if (config::own_name(transform.get<std::string>("_target_", "")) != target) return false;
  const Node& keys = transform.at("keys");
  return keys.kind == Kind::string
             ? keys.string == key
             : std::ranges::any_of(keys.list, [&](const Node& one) { return one.string == key; });
}

/// Adds the transform that an option of a task, or of one of its heads, stands for.
bool add_numbering(
    Node& data, const Node& task, const char* option, const char* target, const char* argument) {
  const Node* values = task.find_direct(option);
  if (values == nullptr || values->is_null() ||
      (values->kind == Kind::list && values->list.empty()))
    return false;
  const std::string key = task.get<std::string>("y_key", "seg");
  bool is_loaded = false, is_changed = false;
  for (const char* split : {"train", "valid", "test", "predict"}) {
    Node* list = data.find("transforms." + std::string(split));
    if (list == nullptr || list->kind != Kind::list) continue;
    const auto begin = list->list.begin(), end = list->list.end();
    const auto loader =
        std::find_if(begin, end, [&](const Node& transform) { return loads(transform, key); });
    if (loader == end) continue;
    is_loaded = true;
    if (std::any_of(begin, end, [&](const Node& one) { return numbers(one, target, key); }))
      continue;
    Node numbering = Node::make_map();
    numbering.set("_target_", Node::make_string(target));
    numbering.set("keys", Node::make_string(key));
    numbering.set(argument, *values);
    list->list.insert(loader + 1, std::move(numbering));
    is_changed = true;
  }
  if (!is_loaded) {
    throw ConfigError(
        "task.{}: no LoadImaged in data.transforms loads '{}'; put {} where your own "
        "transforms load it",
        option,
        key,
        target);
  }
  return is_changed;
}

bool number_objects_of(Node& data, const Node& task) {
  bool is_mask = add_numbering(data, task, "object_values", "ComponentLabelsd", "values");
  const auto colours = task.get<std::vector<std::string>>("colours", {});
  if (!colours.empty() && colours[0] != "#000000")  // else what is padded is the background
    is_mask |= add_numbering(data, task, "colours", "ColourClassesd", "colours");
  return add_numbering(data, task, "background", "ObjectNumbersd", "background") || is_mask;
}

struct ColourClassesd : data::KeyOptions {
  std::vector<std::string> colours;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("colours", colours, "the colours of the classes 0, 1, ...: '#ff0000'", config::required);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    if (image.size(0) == 1)
      throw DataError("a target of 1 channels, but task.colours needs 3 (RGB)");
    ClassLabels labels;
    labels.num_classes = static_cast<int64_t>(colours.size());
    labels.colours = colours;
    return labels.target(image);
  }
};
CYTRA_REGISTER(data::Transform, data::PerKey<ColourClassesd>, "ColourClassesd");

}  // namespace

bool number_objects(Node& data, const Node& task) {
  bool is_changed = number_objects_of(data, task);
  if (const Node* heads = task.find_direct("heads"))
    for (const auto& [name, head] : heads->map) is_changed |= number_objects_of(data, head);
  return is_changed;
}

}  // namespace cytra::tasks
