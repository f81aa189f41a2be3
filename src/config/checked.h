#pragma once
// Checks options that were set in C++ by their visit() and check() (visit.h):
//   Trainer::Trainer(TrainerOptions options) : options_(config::checked(options, "trainer")) ...
// parse() has checked what comes from YAML.
#include <string>
#include <vector>

#include "base/error.h"
#include "config/options.h"

namespace cytra::config {

/// Collects what is wrong with the fields of an Options struct. Components (a Node with a Part) are
/// checked when they are made.
class OptionChecker {
 public:
  explicit OptionChecker(std::string place) : place_(std::move(place)) {}

  void operator()(const char* key, auto& field, const char* /*doc*/) { check_nested(key, field); }
  void operator()(const char* key, auto& field, const char* /*doc*/, Required) {
    if (is_missing(field)) return add(key, "is missing, expected a value");
    check_nested(key, field);
  }
  void operator()(const char* key, auto& field, const char* /*doc*/, double low, double high) {
    add(key, range_problem(field, low, high));
  }
  void operator()(const char* key, int64_t& field, const char* doc, const Keyword& keyword) {
    if (field != keyword.value) (*this)(key, field, doc, keyword.low, keyword.high);
  }
  void operator()(const char* key, auto& field, const char* /*doc*/, const Choices& choices) {
    add(key, choice_problem(field, choices));
  }
  void operator()(const char* /*key*/, Node& /*field*/, const char* /*doc*/, const Part& /*part*/) {
  }
  void operator()(const char* /*key*/, const Unused& /*unused*/, const char* /*doc*/) {}

  /// Checks the options. Throws: ConfigError with a line per field that is wrong, else what
  /// check() throws.
  template <class Options>
  void check(Options& options) {
    options.visit(*this);
    throw_if_any();
    if constexpr (requires { options.check(); }) options.check();
  }

 private:
  template <class T>
  void check_nested(const char* key, T& field) {
    if constexpr (IsOptional<T>::value) {
      if (field) check_nested(key, *field);
    } else if constexpr (IsVector<T>::value) {
      if constexpr (HasVisit<typename T::value_type>) {
        for (auto& item : field) check_nested(key, item);
      }
    } else if constexpr (HasVisit<T>) {
      OptionChecker(name_of(key)).check(field);
    }
  }
  template <class T>
  static bool is_missing(const T& field) {
    if constexpr (IsOptional<T>::value) {
      return !field;
    } else if constexpr (std::is_same_v<T, Node>) {
      return field.is_null();
    } else if constexpr (IsVector<T>::value || std::is_same_v<T, std::string>) {
      return field.empty();
    }
    return false;
  }
  std::string name_of(const char* key) const;
  void add(const char* key, const std::string& what);  // "": nothing is wrong
  void throw_if_any() const;

  std::string place_;
  std::vector<std::string> lines_;
};

/// Returns the options when visit() and check() accept them; check() may have filled in what
/// follows from others. `place` is put before the keys in messages: "trainer". Throws:
/// ConfigError.
template <class Options>
Options checked(Options options, const std::string& place) {
  OptionChecker(place).check(options);
  return options;
}

}  // namespace cytra::config
