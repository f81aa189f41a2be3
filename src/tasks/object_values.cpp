#include "tasks/object_values.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/registry.h"
#include "data/transforms/load_image.h"

namespace cytra::tasks {
namespace {

using config::Kind;
using config::Node;

constexpr const char* kNumbering = "ComponentLabelsd";

bool loads(const Node& transform, const std::string& key) {
  const std::vector<std::string> keys = data::loaded_keys(transform);
  return std::ranges::find(keys, key) != keys.end();
}

bool numbers(const Node& transform, const std::string& key) {
  if (config::own_name(transform.get<std::string>("_target_", "")) != kNumbering) return false;
  const Node& keys = transform.at("keys");
  return keys.kind == Kind::string
             ? keys.string == key
             : std::ranges::any_of(keys.list, [&](const Node& one) { return one.string == key; });
}

/// Adds the numbering for a task, or for one of its heads.
bool number_objects_of(Node& data, const Node& task) {
  const Node* values = task.find_direct("object_values");
  if (values == nullptr || values->kind != Kind::list || values->list.empty()) return false;
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
    if (std::any_of(begin, end, [&](const Node& transform) { return numbers(transform, key); }))
      continue;
    Node numbering = Node::make_map();
    numbering.set("_target_", Node::make_string(kNumbering));
    numbering.set("keys", Node::make_string(key));
    numbering.set("values", *values);
    list->list.insert(loader + 1, std::move(numbering));
    is_changed = true;
  }
  if (!is_loaded) {
    throw ConfigError("task.object_values: no LoadImaged in data.transforms loads '" + key +
                      "'; put ComponentLabelsd where your own transforms load it");
  }
  return is_changed;
}

}  // namespace

bool number_objects(Node& data, const Node& task) {
  bool is_changed = number_objects_of(data, task);
  if (const Node* heads = task.find_direct("heads"))
    for (const auto& [name, head] : heads->map) is_changed |= number_objects_of(data, head);
  return is_changed;
}

}  // namespace cytra::tasks
