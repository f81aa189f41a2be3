#include "config/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/lists.h"
#include "config/options.h"

namespace cytra::config {
namespace {

template <class T>
constexpr const char* expected_text() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  return "text";
}

template <class T>
struct NodeReader {
  static T read(const Node& node) {
    if constexpr (std::is_same_v<T, bool>) {
      if (node.kind == Kind::boolean) return node.boolean;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (node.kind == Kind::integer) return node.integer;
      if (node.kind == Kind::real && std::abs(node.real) < 0x1p63 &&
          std::trunc(node.real) == node.real) {
        return static_cast<int64_t>(node.real);
      }
    } else if constexpr (std::is_same_v<T, double>) {
      if (node.kind == Kind::real) return node.real;
      if (node.kind == Kind::integer) return static_cast<double>(node.integer);
    } else {
      if (node.kind == Kind::string && node.string != "???") return node.string;
      if (node.kind == Kind::integer) return std::to_string(node.integer);  // experiment_name=7
    }
    throw_bad_value(node, expected_text<T>());
  }
};

template <class T>
struct NodeReader<std::vector<T>> {
  static std::vector<T> read(const Node& node) {
    if (node.kind != Kind::list) throw_bad_value(node, "a list");
    return mapped(node.list, [](const Node& item) { return NodeReader<T>::read(item); });
  }
};

/// Takes one step of a dotted key.
const Node* step(const Node& node, std::string_view key) {
  if (node.kind == Kind::map) return node.find_direct(key);
  std::size_t index = 0;
  if (node.kind != Kind::list) return nullptr;
  const auto read = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool whole = read.ec == std::errc() && read.ptr == key.data() + key.size();
  return whole && index < node.list.size() ? &node.list[index] : nullptr;
}

}  // namespace

std::string Origin::text() const {
  if (file == nullptr) return "default";
  if (line == 0) {
    std::string one_line = *file;
    std::ranges::replace(one_line, '\n', ' ');
    return "command line '" + one_line + "'" + (column > 0 ? ":" + std::to_string(column) : "");
  }
  return *file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"null", "boolean", "integer", "real", "string", "list", "map"};
  return names[static_cast<int>(kind)];
}

const Node* Node::find(std::string_view key) const {
  const Node* node = this;
  for (std::size_t start = 0; node != nullptr && start <= key.size();) {
    const std::size_t end = std::min(key.find('.', start), key.size());
    node = step(*node, key.substr(start, end - start));
    start = end + 1;
  }
  return node;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

const Node* Node::find_direct(std::string_view key) const {
  for (const auto& [name, child] : map) {
    if (name == key) return &child;
  }
  return nullptr;
}

Node* Node::find_direct(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find_direct(key));
}

const Node& Node::at(std::string_view key) const {
  const Node* node = find(key);
  if (node != nullptr) return *node;
  const std::size_t dot = key.rfind('.');
  const Node* parent = dot == std::string_view::npos ? this : find(key.substr(0, dot));
  const std::string name(parent == nullptr || parent == this ? key : key.substr(dot + 1));
  const Node& place = parent == nullptr ? *this : *parent;
  throw ConfigError(place.where() + ": no key '" + name + "', expected it here." +
                    suggestion(name, place.keys()));
}

std::vector<std::string> Node::keys() const {
  return keys_of(map);
}

std::string Node::where() const {
  return path.empty() ? origin.text() : origin.text() + ": " + path;
}

bool Node::is_set_by_user() const {
  static const std::filesystem::path own = [] {
    std::error_code ignored;
    try {
      return std::filesystem::weakly_canonical(config_folder(), ignored);
    } catch (const ConfigError&) {  // a program that comes without configs
      return std::filesystem::path();
    }
  }();
  if (origin.file == nullptr || origin.line == 0 || own.empty()) return origin.file != nullptr;
  std::error_code ignored;
  const std::filesystem::path below =
      std::filesystem::weakly_canonical(*origin.file, ignored).lexically_relative(own);
  return below.empty() || *below.begin() == "..";
}

Node Node::make_map() {
  return {.kind = Kind::map};
}
Node Node::make_boolean(bool value) {
  return {.kind = Kind::boolean, .boolean = value};
}
Node Node::make_integer(int64_t value) {
  return {.kind = Kind::integer, .integer = value};
}
Node Node::make_real(double value) {
  return {.kind = Kind::real, .real = value};
}
Node Node::make_string(std::string value) {
  return {.kind = Kind::string, .string = std::move(value)};
}
Node Node::make_list(std::vector<Node> items) {
  return {.kind = Kind::list, .list = std::move(items)};
}

Node& Node::set(const std::string& key, Node value) {
  kind = Kind::map;
  if (Node* child = find_direct(key)) return *child = std::move(value);
  return map.emplace_back(key, std::move(value)).second;
}

template <class T>
T Node::as() const {
  return NodeReader<T>::read(*this);
}
template bool Node::as() const;
template int64_t Node::as() const;
template double Node::as() const;
template std::string Node::as() const;
template std::vector<bool> Node::as() const;
template std::vector<int64_t> Node::as() const;
template std::vector<double> Node::as() const;
template std::vector<std::string> Node::as() const;
template std::vector<std::vector<int64_t>> Node::as() const;
template std::vector<std::vector<double>> Node::as() const;
template std::vector<std::vector<std::string>> Node::as() const;

void add_size(const Node& node, Size& size) {
  ++size.nodes;
  size.bytes += node.string.size();
  for (const Node& item : node.list) add_size(item, size);
  for (const auto& [key, child] : node.map) {
    size.bytes += key.size();
    add_size(child, size);
  }
}

bool equal(const Node& a, const Node& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::null:
      return true;
    case Kind::boolean:
      return a.boolean == b.boolean;
    case Kind::integer:
      return a.integer == b.integer;
    case Kind::real:
      return a.real == b.real || (std::isnan(a.real) && std::isnan(b.real));
    case Kind::string:
      return a.string == b.string;
    case Kind::list:
      return std::equal(a.list.begin(), a.list.end(), b.list.begin(), b.list.end(), equal);
    case Kind::map:
      break;
  }
  if (a.map.size() != b.map.size()) return false;
  for (const auto& [name, child] : a.map) {
    const Node* other = b.find_direct(name);
    if (other == nullptr || !equal(child, *other)) return false;
  }
  return true;
}

}  // namespace cytra::config
