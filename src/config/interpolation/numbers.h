#pragma once
// Python's arithmetic on integers (here of 64 bits) and reals, for operations.cpp.
#include <optional>
#include <string>

#include "config/interpolation/value.h"

namespace cytra::config {

/// An integer or boolean.
bool is_integer(const Value& value);
int64_t integer_of(const Value& value);
double number_of(const Value& value);
/// -1, 0, 1 for a < b, a == b, a > b, exact between integers and reals; nothing with nan.
std::optional<int> compare_numbers(const Value& a, const Value& b);
/// + - * / // % ** of two numbers. Throws: OperationError for a division by zero, an integer over
/// 64 bits, a power that is none or too large.
Value calculate(const std::string& op, const Value& a, const Value& b);
/// int(), float(), round(): numbers and text. Throws: OperationError.
Value as_integer(const Value& value);
Value as_real(const Value& value);
Value rounded(const Value& value, const Value& places);

}  // namespace cytra::config
