#pragma once
// A composed configuration: plain values that know where they were written.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cytra::config {

/// Where a value was written: a file with line and column (from 1), or the command line (line 0;
/// column 0 for the whole override, else from 1 in its text).
struct Origin {
  std::shared_ptr<const std::string> file;  // path, or the text of the override
  int line = 0, column = 0;
  std::string text() const;  // "configs/train.yaml:3:5", "command line 'a=b'", "command line
                             // 'a=b':3", "default"
};

enum class Kind { null, boolean, integer, real, string, list, map };
const char* name_of(Kind kind);  // "integer", ...

/// A value type: copying copies the tree. Maps keep the order of insertion. Thread: const use is
/// safe.
struct Node {
  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  bool quoted = false;  // a string written in quotes
  std::vector<Node> list;
  std::vector<std::pair<std::string, Node>> map;
  Origin origin;
  Origin key_origin;  // of a map's value: where its key is written
  std::string path;   // "model.filters[1]"; set by the Composer on the whole tree

  bool is_null() const { return kind == Kind::null; }
  bool is_map() const { return kind == Kind::map; }
  bool is_container() const { return kind == Kind::map || kind == Kind::list; }
  /// The child, or nullptr; `key` may be dotted ("a.b.0.c").
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// A direct child of a map, or nullptr; the key may hold dots.
  const Node* find_direct(std::string_view key) const;
  Node* find_direct(std::string_view key);
  /// The child. Throws: ConfigError with the existing keys where it is missing.
  const Node& at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::vector<std::string> keys() const;
  /// Whether a user wrote the value: on the command line, or in a file that is not of Cytra's
  /// configs/.
  bool is_set_by_user() const;
  /// The place and path for messages: "configs/model/unet.yaml:12:3: model.filters".
  std::string where() const;

  /// Reads a typed value. Integers convert to double and text, whole doubles to integers. Throws:
  /// ConfigError naming place, expected type and the value found, where the value does not fit. T:
  /// bool, int64_t, double, std::string, std::vector of these.
  template <class T>
  T as() const;
  template <class T>
  T get(std::string_view key) const {
    return at(key).as<T>();
  }
  /// Reads the value of a key; `fallback` when it is missing or null.
  template <class T>
  T get(std::string_view key, T fallback) const {
    const Node* node = find(key);
    return node == nullptr || node->is_null() ? std::move(fallback) : node->as<T>();
  }

  static Node make_map();
  static Node make_boolean(bool value);
  static Node make_integer(int64_t value);
  static Node make_real(double value);
  static Node make_string(std::string value);
  static Node make_list(std::vector<Node> items = {});
  /// Makes a list of booleans, integers, reals or texts.
  template <class List>
  static Node make_list(const List& values) {
    Node node = make_list();
    for (const typename List::value_type& value : values) node.list.push_back(make_value(value));
    return node;
  }
  template <class T>
  static Node make_value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return make_boolean(value);
    } else if constexpr (std::is_integral_v<T>) {
      return make_integer(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return make_real(value);
    } else {
      return make_string(value);
    }
  }
  /// Sets or adds a direct child of a map.
  Node& set(const std::string& key, Node value);
};

/// Whether two values are equal in kind and content (origins are not compared).
bool equal(const Node& a, const Node& b);

/// The size of a tree, for limits: values and the bytes of text and keys.
struct Size {
  std::size_t nodes = 0, bytes = 0;
};
void add_size(const Node& node, Size& size);

/// Reads one YAML document. `name` is used in messages. Scalars are typed as OmegaConf does
/// (YAML 1.1 without dates, 1e3 is a float). Throws: ConfigError with file:line:column (bad syntax,
/// duplicate key, alias cycle, nesting over 64, more than 10,000 values, unknown tag, bytes that
/// are no printable UTF-8).
Node parse_yaml(const std::string& text, const std::string& name);
Node load_yaml(const std::string& file);
/// Reads one value in YAML flow form, as after `key=` on the command line: 1, 1e-3, [1, 2], {a:
/// b}, text, 'quoted'.
Node parse_value(const std::string& text, const Origin& origin);
/// Writes YAML in block style; strings that would be read as another type are quoted.
/// parse_yaml(to_yaml(n)) equals n.
std::string to_yaml(const Node& node);
std::string to_json(const Node& node);  // compact, one line

}  // namespace cytra::config
