#pragma once
// Python's arithmetic on integers (here of 64 bits) and reals, for operations.cpp.
#include <optional>
#include <string>

#include "config/interpolation/value.h"

namespace cytra::config {

/// Whether the value is an integer or boolean.
bool is_integer(const Value& value);
int64_t integer_of(const Value& value);
double number_of(const Value& value);
/// Returns -1, 0, 1 for a < b, a == b, a > b, exact between integers and reals; nothing with nan.
std::optional<int> compare_numbers(const Value& a, const Value& b);
/// Computes + - * / // % ** of two numbers. Throws: OperationError for a division by zero, an
/// integer over 64 bits, a power that does not exist or is too large.
Value calculate(const std::string& op, const Value& a, const Value& b);
/// Python's int(), float() and round() of numbers and text. Throws: OperationError.
Value as_integer(const Value& value);
Value as_real(const Value& value);
Value rounded(const Value& value, const Value& places);

}  // namespace cytra::config
