#pragma once
// One declaration per component: Options::visit(v) lists every option once; parsing, defaults, help
// and the unknown-key error all come from it.
//   struct Options { int64_t width = 8; template <class V> void visit(V& v) { v("width", width,
//   "features"); } };
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "config/node.h"

namespace cytra::config {

[[noreturn]] void throw_unknown_key(const Node& node,
                                    const std::string& key,
                                    const std::vector<std::string>& known);
[[noreturn]] void throw_missing(const Node& node, const char* key);
[[noreturn]] void throw_bad_value(const Node& node, const std::string& expected);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T, class = void>
struct HasVisit : std::false_type {};
template <class Options>
Options parse(const Node& node);

struct Required {};
inline constexpr Required required;

/// Fills an Options struct from a map.
class OptionReader {
 public:
  explicit OptionReader(const Node& node) : node_(node) {}

  template <class T>
  void operator()(const char* key, T& field, const char* /*doc*/) {
    known_.emplace_back(key);
    const Node* child = node_.find_direct(key);
    if (child == nullptr) return;
    read(*child, field);
  }
  /// A key that must be there.
  template <class T>
  void operator()(const char* key, T& field, const char* doc, Required) {
    const Node* child = node_.find_direct(key);
    if (child == nullptr || (child->kind == Kind::list && child->list.empty()))
      throw_missing(node_, key);
    (*this)(key, field, doc);
  }
  /// A value below `low` or above `high` is an error.
  template <class T>
  void operator()(const char* key, T& field, const char* doc, double low, double high) {
    (*this)(key, field, doc);
    if constexpr (IsOptional<T>::value) {
      if (field) check_range(key, static_cast<double>(*field), low, high);
    } else if constexpr (IsVector<T>::value) {
      for (const auto value : field) check_range(key, static_cast<double>(value), low, high);
    } else {
      check_range(key, static_cast<double>(field), low, high);
    }
  }
  /// A text that must be one of `choices`.
  void operator()(const char* key,
                  std::string& field,
                  const char* doc,
                  const std::vector<std::string>& choices) {
    (*this)(key, field, doc);
    check_choice(key, field, choices);
  }
  /// Every key of the map must have been visited; `_target_` and `_convert_` are always allowed.
  void finish() const;

 private:
  template <class T>
  void read(const Node& child, T& field) {
    if constexpr (IsOptional<T>::value) {
      if (child.is_null()) {
        field.reset();
      } else {
        typename T::value_type value{};
        read(child, value);
        field = std::move(value);
      }
    } else if constexpr (std::is_same_v<T, Node>) {
      field = child;
    } else if constexpr (HasVisit<T>::value) {
      field = parse<T>(child);
    } else if constexpr (IsVector<T>::value) {
      field.clear();
      const auto add = [&](const Node& item) {
        typename T::value_type value{};
        read(item, value);
        field.push_back(std::move(value));
      };
      if (child.kind == Kind::list) {
        for (const Node& item : child.list) add(item);
      } else if (!child.is_null()) {
        add(child);  // `keys: raw` is `keys: [raw]`
      }
    } else {
      field = child.as<T>();
    }
  }
  void check_range(const char* key, double value, double low, double high) const;
  void check_choice(const char* key,
                    const std::string& value,
                    const std::vector<std::string>& choices) const;

  const Node& node_;
  std::vector<std::string> known_;
};

template <class T>
struct HasVisit<T, std::void_t<decltype(std::declval<T&>().visit(std::declval<OptionReader&>()))>>
    : std::true_type {};

/// Options from a map node. Throws: ConfigError (unknown key with the nearest one, wrong type, out
/// of range).
template <class Options>
Options parse(const Node& node) {
  Options options;
  if (!node.is_map()) throw_bad_value(node, "a map of options");
  OptionReader reader(node);
  options.visit(reader);
  reader.finish();
  return options;
}

}  // namespace cytra::config
