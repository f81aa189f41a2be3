#include "tasks/named_keys.h"

#include <algorithm>
#include <string>

namespace cytra::tasks {
namespace {

using config::Kind;
using config::Node;

std::string text_or_none(const Node& node, const char* key) {
  const Node* value = node.find_direct(key);
  return value != nullptr && value->kind == Kind::string ? value->string : "";
}

/// The index of a text in a list; the list's size where it is not in it.
std::size_t place_in(const Node& list, const std::string& text) {
  const auto found = std::ranges::find_if(
      list.list, [&](const Node& one) { return one.kind == Kind::string && one.string == text; });
  return static_cast<std::size_t>(found - list.list.begin());
}

/// The list of keys that a transform works on; null where it has none.
Node* keys_of(Node& transform) {
  Node* keys = transform.is_map() ? transform.find_direct("keys") : nullptr;
  return keys != nullptr && keys->kind == Kind::list ? keys : nullptr;
}

/// Has the key treated as another one.
void add_key(Node& transform, const std::string& key, const std::string& like) {
  Node* keys = keys_of(transform);
  if (keys == nullptr) return;
  const std::size_t place = place_in(*keys, like), count = keys->list.size();
  if (place == count || place_in(*keys, key) < count) return;
  for (const char* option : {"mode", "padding_mode", "align_corners", "constant_values"}) {
    Node* values = transform.find_direct(option);
    if (values == nullptr || values->kind != Kind::list || values->list.size() != count) continue;
    const Node same = values->list[place];
    values->list.push_back(same);
  }
  transform.find_direct("keys")->list.push_back(Node::make_string(key));
}

bool is_loaded(Node& list, const std::string& key) {
  return std::ranges::any_of(list.list, [&](Node& transform) {
    const Node* keys = keys_of(transform);
    return (keys != nullptr && place_in(*keys, key) < keys->list.size()) ||
           text_or_none(transform, "keys") == key;
  });
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
  for (const char* split : {"train", "valid", "test", "predict"}) {
    Node* list = data.find("transforms." + std::string(split));
    if (list == nullptr || list->kind != Kind::list || is_loaded(*list, key)) continue;
    for (Node& transform : list->list) add_key(transform, key, like);
    is_changed = is_changed || is_loaded(*list, key);
  }
  return is_changed;
}

}  // namespace

bool load_named_keys(Node& data, const Node& task) {
  bool is_changed = false;
  const auto load_of = [&](const Node& one) {
    const std::string target = text_or_none(one, "y_key");
    for (const char* name : {"mask_key", "class_key"}) {
      const std::string key = text_or_none(one, name);
      if (!key.empty() && !target.empty()) is_changed |= load_key(data, key, target);
    }
  };
  load_of(task);
  if (const Node* heads = task.find_direct("heads"))
    for (const auto& [name, head] : heads->map)
      if (head.is_map()) load_of(head);
  return is_changed;
}

}  // namespace cytra::tasks
