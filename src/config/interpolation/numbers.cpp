#include "config/interpolation/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "config/interpolation/operations.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

using ValueKind = Value::Kind;
__extension__ using Wide = unsigned __int128;

[[noreturn]] void fail_overflow() {
  throw OperationError(
      "an integer over 64 bits, expected a smaller one (1.0 * makes it a real number)");
}

/// The quotient a / b rounded once, as in Python, also beyond 53 bits.
double quotient(int64_t a, int64_t b) {
  constexpr int64_t exact = int64_t{1} << 53;
  if (a <= exact && a >= -exact && b <= exact && b >= -exact)
    return static_cast<double>(a) / static_cast<double>(b);
  const auto size = [](int64_t value) {
    return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  };
  Wide top = size(a);
  int shift = 0;
  while (top != 0 && (top >> 126) == 0) {
    top <<= 1;
    ++shift;
  }
  Wide result = top / size(b);
  if (top % size(b) != 0) result |= 1;  // a remainder: no tie
  const double value = std::ldexp(static_cast<double>(result), -shift);
  return (a < 0) == (b < 0) ? value : -value;
}

}  // namespace

bool is_integer(const Value& value) {
  return value.kind == ValueKind::boolean || value.kind == ValueKind::integer;
}
int64_t integer_of(const Value& value) {
  return value.kind == ValueKind::boolean ? static_cast<int64_t>(value.boolean) : value.integer;
}
double number_of(const Value& value) {
  return value.kind == ValueKind::real ? value.real : static_cast<double>(integer_of(value));
}
std::optional<int> compare_numbers(const Value& a, const Value& b) {
  const auto sign = [](auto left, auto right) { return left < right ? -1 : left > right ? 1 : 0; };
  if (is_integer(a) && is_integer(b)) return sign(integer_of(a), integer_of(b));
  if (a.kind == ValueKind::real && b.kind == ValueKind::real) {
    if (std::isnan(a.real) || std::isnan(b.real)) return std::nullopt;
    return sign(a.real, b.real);
  }
  if (a.kind == ValueKind::real) {
    const std::optional<int> turned = compare_numbers(b, a);
    return turned ? std::optional<int>(-*turned) : std::nullopt;
  }
  if (std::isnan(b.real)) return std::nullopt;
  if (b.real >= 0x1p63) return -1;
  if (b.real < -0x1p63) return 1;
  const double down = std::floor(b.real);
  const int order = sign(integer_of(a), static_cast<int64_t>(down));
  return order == 0 && down != b.real ? -1 : order;
}

namespace {

void floor_divide(double a, double b, double& quotient, double& rest) {
  rest = std::fmod(a, b);
  double parts = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      parts -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (parts != 0) {
    quotient = std::floor(parts);
    if (parts - quotient > 0.5) quotient += 1;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
}

Value divide(const std::string& op, const Value& a, const Value& b) {
  if (number_of(b) == 0) throw OperationError("division by zero, expected another number");
  if (!is_integer(a) || !is_integer(b)) {
    if (op == "/") return Value::make_real(number_of(a) / number_of(b));
    double quotient = 0, rest = 0;
    floor_divide(number_of(a), number_of(b), quotient, rest);
    return Value::make_real(op == "%" ? rest : quotient);
  }
  const int64_t x = integer_of(a), y = integer_of(b);
  if (op == "/") return Value::make_real(quotient(x, y));
  if (y == -1) {
    int64_t result = 0;
    if (op == "%") return Value::make_integer(0);
    if (__builtin_sub_overflow(int64_t{0}, x, &result)) fail_overflow();
    return Value::make_integer(result);
  }
  const bool between = x % y != 0 && (x < 0) != (y < 0);
  return Value::make_integer(op == "%" ? x % y + (between ? y : 0) : x / y - (between ? 1 : 0));
}

Value power(const Value& a, const Value& b) {
  if (is_integer(a) && is_integer(b) && integer_of(b) >= 0) {
    int64_t base = integer_of(a), result = 1;
    const int64_t times = integer_of(b);
    if (base == 0 || base == 1) return Value::make_integer(times == 0 ? 1 : base);
    if (base == -1) return Value::make_integer(times % 2 == 0 ? 1 : -1);
    for (int64_t i = 0; i < times; ++i) {
      if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
    }
    return Value::make_integer(result);
  }
  const double base = number_of(a), times = number_of(b);
  if (base == 0 && times < 0)
    throw OperationError("0 to a negative power, expected another number");
  if (base < 0 && std::isfinite(base) && std::isfinite(times) && std::trunc(times) != times)
    throw OperationError("a broken power of a negative number, expected a whole power");
  const double result = std::pow(base, times);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(times))
    throw OperationError("the power is too large, expected less than 1e308");
  return Value::make_real(result);
}

int64_t to_integer(double value) {
  if (!std::isfinite(value))
    throw OperationError(real_text(value) + " has no integer value, expected a finite number");
  if (std::abs(value) >= 0x1p63) fail_overflow();
  return static_cast<int64_t>(value);
}

}  // namespace

Value calculate(const std::string& op, const Value& a, const Value& b) {
  if (op == "**") return power(a, b);
  if (op == "/" || op == "//" || op == "%") return divide(op, a, b);
  if (!is_integer(a) || !is_integer(b)) {
    const double x = number_of(a), y = number_of(b);
    return Value::make_real(op == "+" ? x + y : op == "-" ? x - y : x * y);
  }
  int64_t result = 0;
  const int64_t x = integer_of(a), y = integer_of(b);
  const bool over = op == "+"   ? __builtin_add_overflow(x, y, &result)
                    : op == "-" ? __builtin_sub_overflow(x, y, &result)
                                : __builtin_mul_overflow(x, y, &result);
  if (over) fail_overflow();
  return Value::make_integer(result);
}

Value as_integer(const Value& value) {
  if (is_integer(value)) return Value::make_integer(integer_of(value));
  if (value.kind == ValueKind::real) return Value::make_integer(to_integer(value.real));
  int64_t result = 0;
  if (!value.is_text() || !read_python_integer(value.text, result)) {
    throw OperationError("int(" + (value.is_text() ? quote(value.text) : name_of(value.kind)) +
                         "), expected a number or its digits (at most 64 bits)");
  }
  return Value::make_integer(result);
}

Value as_real(const Value& value) {
  if (value.is_number()) return Value::make_real(number_of(value));
  std::string text = value.is_text() ? value.text : "";
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  std::string clean;
  bool good = !text.empty();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return at < text.size() && std::isdigit(text[at]) != 0;
    };
    if (text[i] == '_') {
      good = good && i > 0 && digit(i - 1) && digit(i + 1);
    } else {
      clean += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
    }
  }
  const bool negative = good && clean[0] == '-';
  if (good && (negative || clean[0] == '+')) clean.erase(0, 1);
  double result = 0;
  if (clean == "infinity") clean = "inf";
  const auto read = std::from_chars(clean.data(), clean.data() + clean.size(), result);
  good = good && !clean.empty() && clean[0] != '-' && read.ptr == clean.data() + clean.size() &&
         clean.find('(') == std::string::npos;
  if (!good)
    throw OperationError("float(" + (value.is_text() ? quote(value.text) : name_of(value.kind)) +
                         "), expected a number or its digits");
  if (read.ec == std::errc::result_out_of_range) result = std::strtod(clean.c_str(), nullptr);
  return Value::make_real(negative ? -result : result);
}

namespace {

/// Rounds `value` half to even at 10^-places, by its exact decimal digits.
double round_places(double value, int64_t places) {
  if (!std::isfinite(value) || value == 0 || places > 323) return value;
  if (places < -308) return std::copysign(0.0, value);
  std::array<char, 1600> buffer{};
  if (places >= 0) {
    std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(places), value);
    return std::strtod(buffer.data(), nullptr);
  }
  // 1250 at 10^2: keep "12", and round by "50" and what follows the point.
  std::snprintf(buffer.data(), buffer.size(), "%.1100f", std::abs(value));
  std::string text(buffer.data());
  const auto dropped = static_cast<std::size_t>(-places);
  const std::size_t point = text.find('.');
  if (point < dropped) return std::copysign(0.0, value);
  std::string kept = "0" + text.substr(0, point - dropped);
  text.erase(0, point - dropped);
  const bool more = text.find_first_not_of("0.", 1) != std::string::npos;
  if (text[0] > '5' || (text[0] == '5' && (more || (kept.back() - '0') % 2 == 1))) {
    std::size_t i = kept.size() - 1;
    for (; kept[i] == '9'; --i) kept[i] = '0';
    ++kept[i];
  }
  return std::copysign(std::strtod((kept + "e" + std::to_string(dropped)).c_str(), nullptr), value);
}

}  // namespace

Value rounded(const Value& value, const Value& digits) {
  const bool has_places = digits.kind != ValueKind::null;
  if (!value.is_number() || (has_places && !is_integer(digits)))
    throw OperationError("round() of " + std::string(name_of(value.kind)) +
                         ", expected a number and whole places");
  const int64_t places = has_places ? integer_of(digits) : 0;
  if (value.kind == ValueKind::real) {
    if (has_places) {
      const double result = round_places(value.real, places);
      if (std::isinf(result) && std::isfinite(value.real))
        throw OperationError("the rounded number is too large, expected less than 1e308");
      return Value::make_real(result);
    }
    return Value::make_integer(to_integer(std::nearbyint(value.real)));
  }
  const int64_t number = integer_of(value);
  if (places >= 0) return Value::make_integer(number);
  if (places < -19) return Value::make_integer(0);
  Wide unit = 1;
  for (int64_t i = places; i < 0; ++i) unit *= 10;
  const Wide size =
      number < 0 ? Wide{~static_cast<uint64_t>(number)} + 1 : Wide(static_cast<uint64_t>(number));
  Wide parts = size / unit;
  const Wide rest = size % unit * 2;
  if (rest > unit || (rest == unit && parts % 2 == 1)) ++parts;
  if (parts * unit > Wide{INT64_MAX}) fail_overflow();
  const auto result = static_cast<int64_t>(parts * unit);
  return Value::make_integer(number < 0 ? -result : result);
}

}  // namespace cytra::config
