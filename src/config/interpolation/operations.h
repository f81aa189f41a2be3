#pragma once
// Python's operators and functions on values, for expression.cpp.
#include <stdexcept>
#include <string>
#include <vector>

#include "config/interpolation/value.h"

namespace cytra::config {

/// The error that Python would raise, in words: "division by zero, expected ...".
struct OperationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The operations. `budget`: characters and items that results may still have.
class Operations {
 public:
  /// A binary operation. op: + - * / // % ** == != < <= > >= in "not in" is "is not"
  Value binary(const std::string& op, const Value& a, const Value& b);
  /// A unary operation. op: + -
  Value unary(const std::string& op, const Value& a);
  Value item(const Value& container, const Value& index);
  /// Calls abs, float, int, len, max, min, round or str.
  Value call(const std::string& name, const std::vector<Value>& arguments);
  static bool is_true(const Value& value);
  static bool is_function(const std::string& name);

 private:
  void spend(std::size_t size);
  Value add(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value repeat(const Value& sequence, int64_t times);
  Value extreme(const std::string& name, const std::vector<Value>& arguments);

  std::size_t left_ = 100'000;
};

}  // namespace cytra::config
