#pragma once
// The value of a ${...}, before it becomes part of a tree.
#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// A node and the containers around it.
struct Site {
  const Node* node = nullptr;
  const Site* parent = nullptr;  // nullptr for a root
  std::string key;               // in a map
  std::size_t index = 0;         // in a list
  /// The path of the site: "model.filters[1]", "" for a root.
  std::string path() const;
  const Site& root() const;
};

/// A scalar; a list or map outside of any tree (its ${...} are resolved, like OmegaConf's plain
/// Python values); or a container of a tree, whose ${...} are followed when they are read.
struct Value {
  enum class Kind { null, boolean, integer, real, text, list, map, container };
  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> items;    // of a list; the values of a map
  std::vector<Value> keys;     // of a map
  const Site* site = nullptr;  // the place of a container, or of a scalar in a tree

  static Value make_text(std::string text) { return {.kind = Kind::text, .text = std::move(text)}; }
  static Value make_boolean(bool value) { return {.kind = Kind::boolean, .boolean = value}; }
  static Value make_integer(int64_t value) { return {.kind = Kind::integer, .integer = value}; }
  static Value make_real(double value) { return {.kind = Kind::real, .real = value}; }
  static Value make_list(std::vector<Value> items) {
    return {.kind = Kind::list, .items = std::move(items)};
  }
  /// The value of a scalar node, unchanged.
  static Value of(const Node& scalar);
  bool is_text() const { return kind == Kind::text; }
  bool is_number() const {
    return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real;
  }
};

/// The kind in words, for messages: "text", "a list", ...
const char* name_of(Value::Kind kind);
std::string python_str(const Value& value);
std::string python_repr(const Value& value);
/// A text that is equal for keys that are equal in Python: 1, 1.0 and true.
std::string key_identity(const Value& key);
/// Adds the values and bytes that a copy would take; a container counts as one value.
void add_size(const Value& value, Size& size);
/// Makes a tree of the value: containers are copied with their ${...}.
Node to_node(const Value& value);

}  // namespace cytra::config
