// The values of range(start, stop, step), digit for digit as by Hydra's FloatRange: Python
// decimals of 28 digits, to which the step is added repeatedly. So range(0, 1, 0.1) has
// 0.7000000000000001, and range(0, 0.2, 0.1) has 0.2.
#include "config/overrides/range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "config/text/cast.h"

namespace cytra::config {
namespace {

constexpr std::size_t precision = 28;  // digits of Python's default decimal context

/// The number (negative ? -1 : 1) * digits * 10^exponent; zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;

  /// Makes the exact decimal form of a binary number.
  explicit Decimal(double value) : negative(std::signbit(value)) {
    char text[800];
    std::snprintf(text, sizeof text, "%.766e", std::abs(value));
    digits = std::string(1, text[0]) + std::string(text + 2, 766);
    exponent = std::atoi(text + 769) - 766;
    trim();
  }
  void trim() {
    const std::size_t last = digits.find_last_not_of('0');
    const std::size_t kept = last == std::string::npos ? 0 : last + 1;
    exponent += static_cast<int>(digits.size() - kept);
    digits.resize(kept);
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty()) exponent = 0;
  }
  double to_double() const {
    const std::string text = "0" + digits + "e" + std::to_string(exponent);
    const double size = std::strtod(text.c_str(), nullptr);
    return negative ? -size : size;
  }
};

/// The exact sum.
Decimal sum(Decimal a, Decimal b) {
  const int exponent = std::min(a.exponent, b.exponent);
  for (Decimal* part : {&a, &b}) {
    part->digits.append(static_cast<std::size_t>(part->exponent - exponent), '0');
    part->exponent = exponent;
  }
  const std::size_t size = std::max(a.digits.size(), b.digits.size()) + 1;
  for (Decimal* part : {&a, &b}) part->digits.insert(0, size - part->digits.size(), '0');
  const bool subtract = a.negative != b.negative;
  if (subtract && a.digits < b.digits) std::swap(a, b);
  int carry = 0;
  for (std::size_t i = size; i-- > 0;) {
    int digit = a.digits[i] - '0' + (subtract ? '0' - b.digits[i] : b.digits[i] - '0') + carry;
    carry = digit < 0 ? -1 : digit / 10;
    digit -= carry * 10;
    a.digits[i] = static_cast<char>('0' + digit);
  }
  a.trim();
  if (a.digits.empty()) a.negative = false;
  return a;
}

/// Rounds to `precision` digits, half to even.
void round(Decimal& value) {
  if (value.digits.size() <= precision) return;
  const char next = value.digits[precision];
  const bool half = next == '5' && value.digits.size() == precision + 1;  // no zeros at the end
  const bool up = half ? (value.digits[precision - 1] - '0') % 2 == 1 : next >= '5';
  value.exponent += static_cast<int>(value.digits.size() - precision);
  value.digits.resize(precision);
  if (up) {
    Decimal one(1.0);
    one.exponent = value.exponent;
    one.negative = value.negative;
    value = sum(value, one);
  } else {
    value.trim();
  }
}

[[noreturn]] void fail_too_many() {
  throw std::invalid_argument("a range of over " + std::to_string(max_sweep_values) +
                              " values, expected fewer");
}

std::vector<Node> real_values(const SweepValue& range) {
  std::vector<Node> values;
  for (const Node* node : {&range.start, &range.stop, &range.step}) {
    if (!std::isfinite(number_of(*node)))
      throw std::invalid_argument("range() of inf or nan, expected other numbers");
  }
  const Decimal step(number_of(range.step));
  Decimal stop(number_of(range.stop));
  stop.negative = !stop.negative;
  for (Decimal at(number_of(range.start));;) {
    const Decimal left = sum(at, stop);
    if (left.digits.empty() || left.negative == step.negative) return values;
    if (values.size() == max_sweep_values) fail_too_many();
    values.push_back(Node::make_real(at.to_double()));
    at = sum(at, step);
    round(at);
  }
}

}  // namespace

std::vector<Node> range_values(const SweepValue& range) {
  if (number_of(range.step) == 0)
    throw std::invalid_argument("range() with a step of 0, expected another step");
  for (const Node* node : {&range.start, &range.stop, &range.step}) {
    if (node->kind != Kind::integer) return real_values(range);
  }
  std::vector<Node> values;
  const int64_t step = range.step.integer, stop = range.stop.integer;
  for (int64_t at = range.start.integer; step > 0 ? at < stop : at > stop;) {
    if (values.size() == max_sweep_values) fail_too_many();
    values.push_back(Node::make_integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return values;
}

}  // namespace cytra::config
