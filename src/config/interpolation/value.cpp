#include "config/interpolation/value.h"

#include "config/text/cast.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

void append_value_repr(const Value& value, std::string& out) {
  const auto append_all = [&](char open, char close) {
    out += open;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out += ", ";
      if (!value.keys.empty()) {
        append_value_repr(value.keys[i], out);
        out += ": ";
      }
      append_value_repr(value.items[i], out);
    }
    out += close;
  };
  switch (value.kind) {
    case Value::Kind::container:
      out += python_repr(*value.site->node);
      break;
    case Value::Kind::text:
      out += python_repr(value.text);
      break;
    case Value::Kind::list:
      append_all('[', ']');
      break;
    case Value::Kind::map:
      append_all('{', '}');
      break;
    default:
      out += python_repr(to_node(value));
  }
}

/// The text of a key as Python's JSON writes it: 1, true, null.
std::string key_text(const Value& key) {
  return key.is_text() ? key.text : plain_text(to_node(key));
}

}  // namespace

std::string Site::path() const {
  if (parent == nullptr) return "";
  const std::string before = parent->path();
  if (parent->node->kind == Kind::list) return before + "[" + std::to_string(index) + "]";
  return before.empty() ? key : before + "." + key;
}

const Site& Site::root() const {
  const Site* site = this;
  while (site->parent != nullptr) site = site->parent;
  return *site;
}

Value Value::of(const Node& scalar) {
  switch (scalar.kind) {
    case config::Kind::boolean:
      return make_boolean(scalar.boolean);
    case config::Kind::integer:
      return make_integer(scalar.integer);
    case config::Kind::real:
      return make_real(scalar.real);
    case config::Kind::string:
      return make_text(scalar.string);
    default:
      return {};
  }
}

const char* name_of(Value::Kind kind) {
  constexpr const char* names[] = {"null",
                                   "a boolean",
                                   "an integer",
                                   "a real number",
                                   "text",
                                   "a list",
                                   "a map",
                                   "a container of the configuration"};
  return names[static_cast<int>(kind)];
}

std::string python_repr(const Value& value) {
  std::string out;
  append_value_repr(value, out);
  return out;
}

std::string python_str(const Value& value) {
  return value.is_text() ? value.text : python_repr(value);
}

std::string key_identity(const Value& key) {
  return key.is_number() ? real_text(number_of(to_node(key))) : "=" + python_str(key);
}

void add_size(const Value& value, Size& size) {
  ++size.nodes;
  size.bytes += value.text.size();
  for (const Value& key : value.keys) size.bytes += key.text.size();
  for (const Value& item : value.items) add_size(item, size);
}

Node to_node(const Value& value) {
  Node node;
  switch (value.kind) {
    case Value::Kind::null:
      break;
    case Value::Kind::boolean:
      return Node::make_boolean(value.boolean);
    case Value::Kind::integer:
      return Node::make_integer(value.integer);
    case Value::Kind::real:
      return Node::make_real(value.real);
    case Value::Kind::text:
      node = Node::make_string(value.text);
      node.quoted = true;
      break;
    case Value::Kind::list:
      node = Node::make_list();
      for (const Value& item : value.items) node.list.push_back(to_node(item));
      break;
    case Value::Kind::map:
      node = Node::make_map();
      for (std::size_t i = 0; i < value.items.size(); ++i)
        node.map.emplace_back(key_text(value.keys[i]), to_node(value.items[i]));
      break;
    case Value::Kind::container:
      return *value.site->node;
  }
  return node;
}

}  // namespace cytra::config
