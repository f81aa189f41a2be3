#pragma once
// One declaration per component: Options::visit(v) lists every option once (visit.h); parsing,
// checking, descriptions and the JSON schema (schema.h) all come from it.
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/node.h"
#include "config/problems.h"
#include "config/visit.h"

namespace cytra::config {

/// What is wrong with a field, for messages: "expected a value from 1 to 8, got 9"; "": nothing.
std::string choice_problem(const std::optional<std::string>& value, const Choices& choices);
std::string number_problem(double value, double low, double high);
template <class T>
std::string range_problem(const T& field, double low, double high) {
  if constexpr (IsOptional<T>::value) {
    return field ? range_problem(*field, low, high) : "";
  } else if constexpr (IsVector<T>::value) {
    std::string problem;
    for (std::size_t i = 0; i < field.size() && problem.empty(); ++i)
      problem = range_problem(field[i], low, high);
    return problem;
  } else {
    return number_problem(static_cast<double>(field), low, high);
  }
}

/// Fills an Options struct. `variables`: dotted names of the user's own, for plain maps alone.
template <class Options>
Options read_options(const Node& node,
                     Problems& problems,
                     const std::vector<std::string>& variables = {});

/// Fills an Options struct from a map.
class OptionReader {
 public:
  OptionReader(const Node& node, Problems& problems, const std::vector<std::string>& variables)
      : node_(node), problems_(problems), variables_(variables) {}

  void operator()(const char* key, auto& field, const char* /*doc*/) { take(key, field); }
  /// Reads a required key.
  void operator()(const char* key, auto& field, const char* /*doc*/, Required) {
    take(key, field);
    require(key);
  }
  /// Reads a value; below `low` or above `high` it is an error.
  void operator()(const char* key, auto& field, const char* /*doc*/, double low, double high) {
    if (const Node* child = take(key, field)) fail(*child, range_problem(field, low, high));
  }
  void operator()(const char* key, int64_t& field, const char* doc, const Keyword& keyword);
  /// Reads a text that must be one of `choices`.
  void operator()(const char* key, auto& field, const char* /*doc*/, const Choices& choices) {
    if (const Node* child = take(key, field)) fail(*child, choice_problem(field, choices));
  }
  /// Takes a component's node, from which the component is made later.
  void operator()(const char* key, Node& field, const char* doc, const Part& part);
  void operator()(const char* key, const Unused& unused, const char* doc);
  /// Whether a map was given; else adds a problem.
  bool is_map();
  /// Whether no value was wrong, and every key except _target_ and the like was visited.
  bool finish();

 private:
  /// Reads the value, where there is one that fits.
  const Node* take(const char* key, auto& field) {
    known_.emplace_back(key);
    const Node* child = node_.find_direct(key);
    return child != nullptr && read_value(*child, field) ? child : nullptr;
  }
  /// Reads a value. Returns false when it does not fit.
  template <class T>
  bool read_value(const Node& child, T& field) {
    if constexpr (IsOptional<T>::value) {
      field.reset();
      return child.is_null() || read_value(child, field.emplace());
    } else if constexpr (std::is_same_v<T, Node>) {
      field = child;
    } else if constexpr (HasVisit<T>) {
      field = read_options<T>(child, problems_, variables_);
    } else if constexpr (IsVector<T>::value) {
      field.clear();
      bool fits = true;
      const auto add = [&](const Node& item) {
        typename T::value_type value{};
        fits = read_value(item, value) && fits;
        field.push_back(std::move(value));
      };
      if (child.kind == Kind::list) {
        for (const Node& item : child.list) add(item);
      } else if (!child.is_null()) {
        add(child);  // `keys: raw` is `keys: [raw]`
      }
      return fits;
    } else {
      try {
        field = child.as<T>();
      } catch (const ConfigError& error) {
        fail(child, error.what());
        return false;
      }
    }
    return true;
  }
  void require(const char* key);  // a value must be there, and no empty list
  void fail(const Node& place, const std::string& what);  // "": nothing is wrong

  const Node& node_;
  Problems& problems_;
  const std::vector<std::string>& variables_;
  std::vector<std::string> known_;
  bool ok_ = true;
};

[[noreturn]] void throw_bad_value(const Node& node, const std::string& expected);

template <class Options>
Options read_options(const Node& node,
                     Problems& problems,
                     const std::vector<std::string>& variables) {
  Options options;
  OptionReader reader(node, problems, variables);
  if (!reader.is_map()) return options;
  options.visit(reader);
  if (!reader.finish()) return options;
  if constexpr (requires { options.check(); }) {
    try {
      options.check();
    } catch (const ConfigError& error) {
      problems.add(node, error.what());
    }
  }
  return options;
}

/// Reads options from a map node. Throws: ConfigError with a line per problem (unknown key with
/// the nearest one, wrong type, out of range, missing).
template <class Options>
Options parse(const Node& node) {
  Problems problems;
  Options options = read_options<Options>(node, problems);
  problems.throw_if_any();
  return options;
}

}  // namespace cytra::config
