#include "config/composition/apply_override.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "config/composer.h"
#include "config/composition/merge.h"
#include "config/interpolation/interpolate.h"
#include "config/text/cast.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

/// Compares as Python's ==: 1, 1.0 and true are one value, and the order of keys does not count.
bool python_equal(const Node& a, const Node& b) {
  if (is_number(a) && is_number(b)) {
    const bool whole = a.kind == Kind::integer && b.kind == Kind::integer;
    return whole ? a.integer == b.integer : number_of(a) == number_of(b);
  }
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::list)
    return std::equal(a.list.begin(), a.list.end(), b.list.begin(), b.list.end(), python_equal);
  if (a.kind != Kind::map) return equal(a, b);
  return a.map.size() == b.map.size() && std::ranges::all_of(a.map, [&](const auto& entry) {
           const Node* other = b.find_direct(entry.first);
           return other != nullptr && python_equal(entry.second, *other);
         });
}

std::string unknown_key(const Node& root,
                        const Override& override,
                        const std::string& key,
                        const std::vector<std::string>& groups) {
  const std::string best = nearest_key(root, key, groups);
  std::string text = override.where() + ": no key '" + key + "'.";
  if (!best.empty()) text += " Did you mean '" + best + "'?";
  if (override.action == Override::Action::change)
    text += " '+" + override.origin.file->substr(0, 200) + "' would add a new key.";
  return text;
}

Node& item_of(Node& list, const std::string& step, const Override& override) {
  int64_t index = 0;
  const bool fits = read_python_integer(step, index) && index >= 0 && index < std::ssize(list.list);
  if (fits) return list.list[static_cast<std::size_t>(index)];
  throw ConfigError(override.where() + ": a list of " + std::to_string(list.list.size()) +
                    ", expected an index of it instead of '" + step + "'");
}

/// The current value of the key, following each ${...} on the way; nothing for null, ???, and a
/// missing key.
std::optional<Node> current_value(const Node& root, const Override& override) {
  Interpolator tree(root);
  const std::string source = "'" + override.key + "'";
  try {
    const auto found = tree.select_from(tree.root(), tree.root(), override.key, source, false);
    if (found.result != Interpolator::Selection::Result::found) return std::nullopt;
    if (found.value.kind == Value::Kind::container) return *found.value.site->node;
    Node value = to_node(found.value);
    if (value.is_null() || is_missing(value)) return std::nullopt;
    return value;
  } catch (const ConfigError& error) {
    throw ConfigError(override.where() + ": " + error.what());
  }
}

/// Whether the value is equal as it is written, or with the ${...} inside followed.
bool has_value(const Node& root, const Override& override, const Node& current) {
  const Node& wanted = override.values[0];
  if (python_equal(current, wanted)) return true;
  if (!current.is_container()) return false;
  try {
    return python_equal(evaluate(root, override.key), wanted);
  } catch (const ConfigError&) {
    return false;  // a reference that leads nowhere equals nothing
  }
}

/// Removes a value. References on the way are followed, so it may be elsewhere in the tree.
void remove_value(Node& root, const Override& override, const std::vector<std::string>& groups) {
  const std::optional<Node> current = current_value(root, override);
  const std::size_t dot = override.key.rfind('.');
  const std::string last = override.key.substr(dot + 1);
  Node* parent = dot == std::string::npos ? &root : container_at(root, override.key.substr(0, dot));
  // Hydra refuses to remove null and ???, and items of lists.
  const Node* node = parent == nullptr ? nullptr : parent->find(last);
  if (!current && node == nullptr)
    throw ConfigError(unknown_key(root, override, override.key, groups));
  const bool any = override.values.empty() || override.values[0].is_null();
  if (!any && (!current || !has_value(root, override, *current))) {
    throw ConfigError(override.where() + ": '" + override.key + "' is " +
                      (current ? plain_text(*current).substr(0, 200) : "not set") + ", expected " +
                      plain_text(override.values[0]));
  }
  if (parent != nullptr && parent->kind == Kind::list) {
    throw ConfigError(override.where() + ": '" + override.key.substr(0, dot) +
                      "' is a list, whose items can't be removed one by one; expected '" +
                      override.key.substr(0, dot) + "=[...]' with those that stay");
  }
  if (node == nullptr) return;  // it is in a map that a function made for this reading
  parent->map.erase(
      std::ranges::find_if(parent->map, [&](const auto& entry) { return entry.first == last; }));
}

/// Sets a value. A ${...} on the way is replaced like any scalar, whereas reading follows it.
void set_value(Node& root, const Override& override, const std::vector<std::string>& groups) {
  const bool may_add = override.action != Override::Action::change;
  const Node& value = override.values.at(0);
  const std::vector<std::string> steps = split(override.key, '.');
  Node* node = &root;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    if (node->kind == Kind::list) {
      node = &item_of(*node, steps[i], override);
    } else {
      Node* child = node->find_direct(steps[i]);
      if (child == nullptr && !may_add)
        throw ConfigError(unknown_key(root, override, override.key, groups));
      node = child != nullptr ? child : &node->set(steps[i], Node());
    }
    if (last || node->is_container()) continue;
    if (!may_add) throw ConfigError(unknown_key(root, override, override.key, groups));
    *node = Node::make_map();
    node->origin = override.origin;
  }
  if (!value.is_container() || !node->is_container()) {
    *node = value;
    return;
  }
  std::vector<std::string> unknown;
  const OnNewKey note = [&](const std::string& path) {
    unknown.push_back(unknown_key(root, override, path, {}));
  };
  merge_into(*node, value, root, override.key, may_add ? OnNewKey() : note);
  if (!unknown.empty()) throw ConfigError(join(unknown, "\n"));
}

}  // namespace

void apply_override(Node& root, const Override& override, const std::vector<std::string>& groups) {
  if (override.action == Override::Action::remove) return remove_value(root, override, groups);
  if (override.action == Override::Action::add) {
    const std::optional<Node> current = current_value(root, override);
    if (current && !override.values.at(0).is_container()) {
      throw ConfigError(override.where() + ": '" + override.key + "' is already " +
                        plain_text(*current).substr(0, 200) + ", expected '" +
                        override.origin.file->substr(1, 200) + "' without '+'");
    }
  }
  set_value(root, override, groups);
}

}  // namespace cytra::config
