#include "tasks/loaded_keys.h"

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

std::string text_or_none(const Node& node, const char* key) {
  const Node* value = node.find_direct(key);
  return value != nullptr && value->kind == Kind::string ? value->string : "";
}

/// Changes the data by the task and by each of its heads. Returns whether anything changed.
bool change_by_heads(const Node& task, const auto& change) {
  bool is_changed = change(task);
  if (const Node* heads = task.find_direct("heads"))
    for (const auto& [name, head] : heads->map)
      if (head.is_map()) is_changed |= change(head);
  return is_changed;
}

void for_transforms(Node& data, const auto& action) {
  for (const char* split : {"train", "valid", "test", "predict"}) {
    Node* list = data.find("transforms." + std::string(split));
    if (list != nullptr && list->kind == Kind::list) action(list->list);
  }
}

/// The index of a text in a list; the list's size where it is not in it.
std::size_t place_in(const Node& list, const std::string& text) {
  const auto found = std::ranges::find_if(
      list.list, [&](const Node& one) { return one.kind == Kind::string && one.string == text; });
  return static_cast<std::size_t>(found - list.list.begin());
}

/// Whether a transform works on a key.
bool works_on(const Node& transform, const std::string& key) {
  const Node* keys = transform.is_map() ? transform.find_direct("keys") : nullptr;
  if (keys == nullptr) return false;
  return keys->kind == Kind::string ? keys->string == key
                                    : place_in(*keys, key) < keys->list.size();
}

/// Has the key treated as another one.
void add_key(Node& transform, const std::string& key, const std::string& like) {
  if (!works_on(transform, like) || works_on(transform, key)) return;
  Node& keys = *transform.find_direct("keys");
  if (keys.kind != Kind::list) return;
  const std::size_t place = place_in(keys, like), count = keys.list.size();
  for (const char* option : {"mode", "padding_mode", "align_corners", "constant_values"}) {
    Node* values = transform.find_direct(option);
    if (values == nullptr || values->kind != Kind::list || values->list.size() != count) continue;
    const Node same = values->list[place];
    values->list.push_back(same);
  }
  transform.find_direct("keys")->list.push_back(Node::make_string(key));
}

bool load_key(Node& data, const std::string& key, const std::string& like) {
  Node* columns = data.find_direct("columns");
  const bool is_listed = columns == nullptr || columns->kind != Kind::list ||
                         columns->list.empty() || place_in(*columns, key) < columns->list.size();
  bool is_changed = !is_listed;
  if (!is_listed) {
    Node* folders = data.find_direct("folders");  // of the columns, where they are named
    if (folders != nullptr && folders->list.size() == columns->list.size())
      folders->list.push_back(Node::make_string(key));
    columns->list.push_back(Node::make_string(key));
  }
  for_transforms(data, [&](std::vector<Node>& list) {
    const auto is_loaded = [&] {
      return std::ranges::any_of(list, [&](const Node& one) { return works_on(one, key); });
    };
    if (is_loaded()) return;
    for (Node& transform : list) add_key(transform, key, like);
    is_changed = is_changed || is_loaded();
  });
  return is_changed;
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
  for_transforms(data, [&](std::vector<Node>& list) {
    const auto loader = std::ranges::find_if(list, [&](const Node& transform) {
      const std::vector<std::string> keys = data::loaded_keys(transform);
      return std::ranges::find(keys, key) != keys.end();
    });
    if (loader == list.end()) return;
    is_loaded = true;
    if (std::ranges::any_of(list, [&](const Node& one) {
          return config::own_name(one.get<std::string>("_target_", "")) == target &&
                 works_on(one, key);
        }))
      return;
    Node numbering = Node::make_map();
    numbering.set("_target_", Node::make_string(target));
    numbering.set("keys", Node::make_string(key));
    numbering.set(argument, *values);
    list.insert(loader + 1, std::move(numbering));
    is_changed = true;
  });
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
    labels.num_classes = std::ssize(colours);
    labels.colours = colours;
    return labels.target(image);
  }
};
CYTRA_REGISTER(data::Transform, data::PerKey<ColourClassesd>, "ColourClassesd");

}  // namespace

bool load_named_keys(Node& data, const Node& task) {
  return change_by_heads(task, [&](const Node& one) {
    const std::string target = text_or_none(one, "y_key");
    bool is_changed = false;
    for (const char* name : {"mask_key", "class_key"}) {
      const std::string key = text_or_none(one, name);
      if (!key.empty() && !target.empty()) is_changed |= load_key(data, key, target);
    }
    return is_changed;
  });
}

bool number_objects(Node& data, const Node& task) {
  return change_by_heads(task, [&](const Node& one) {
    bool is_mask = add_numbering(data, one, "object_values", "ComponentLabelsd", "values");
    const auto colours = one.get<std::vector<std::string>>("colours", {});
    if (!colours.empty() && colours[0] != "#000000")  // else what is padded is the background
      is_mask |= add_numbering(data, one, "colours", "ColourClassesd", "colours");
    return add_numbering(data, one, "background", "ObjectNumbersd", "background") || is_mask;
  });
}

}  // namespace cytra::tasks
