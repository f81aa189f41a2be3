#include "tasks/object_values.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/registry.h"

namespace cytra::tasks {
namespace {

using config::Kind;
using config::Node;

bool is_transform(const Node& transform, const char* name, const std::string& key) {
  const Node* target = transform.is_map() ? transform.find_direct("_target_") : nullptr;
  if (target == nullptr || target->kind != Kind::string || config::own_name(target->string) != name)
    return false;
  const Node& keys = transform.at("keys");
  if (keys.kind == Kind::string) return keys.string == key;
  return std::any_of(keys.list.begin(), keys.list.end(), [&](const Node& one) {
    return one.kind == Kind::string && one.string == key;
  });
}

}  // namespace

bool number_objects(Node& data, const Node& task) {
  const Node* values = task.find_direct("object_values");
  if (values == nullptr || values->kind != Kind::list || values->list.empty()) return false;
  const std::string key = task.get<std::string>("y_key", "seg");
  bool is_loaded = false, is_changed = false;
  for (const char* split : {"train", "valid", "test", "predict"}) {
    Node* list = data.find("transforms." + std::string(split));
    if (list == nullptr || list->kind != Kind::list) continue;
    const auto begin = list->list.begin(), end = list->list.end();
    const auto loader = std::find_if(begin, end, [&](const Node& transform) {
      return is_transform(transform, "LoadImaged", key);
    });
    if (loader == end) continue;
    is_loaded = true;
    if (std::any_of(begin, end, [&](const Node& transform) {
          return is_transform(transform, "ComponentLabelsd", key);
        }))
      continue;
    Node numbering = Node::make_map();
    numbering.set("_target_", Node::make_string("ComponentLabelsd"));
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

}  // namespace cytra::tasks
