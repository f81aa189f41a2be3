#include "config/text/cast.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/strings.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

/// The text of a number without its '_', which stand between digits; "" when a '_' is elsewhere.
std::string number_text(std::string_view text) {
  std::string clean = trim(text);
  if (clean.starts_with("++") || clean.starts_with("+-")) return "";
  if (clean.starts_with("+")) clean.erase(0, 1);
  const auto digit = [&](std::size_t i) { return i < clean.size() && is_digit(clean[i]); };
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (clean[i] == '_' && (i == 0 || !digit(i - 1) || !digit(i + 1))) return "";
  }
  std::erase(clean, '_');
  return clean;
}

bool read_real(const std::string& source, double& value) {
  const std::string text = in_small_letters(number_text(source));
  if (text.empty()) return false;
  const bool negative = text[0] == '-';
  const std::string size = text.substr(negative ? 1 : 0);
  if (size == "inf" || size == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (size == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (size.empty() || (size[0] != '.' && !is_digit(size[0]))) {
    return false;
  } else {
    const auto read = std::from_chars(size.data(), size.data() + size.size(), value);
    if (read.ptr != size.data() + size.size() || read.ec == std::errc::invalid_argument)
      return false;
    if (read.ec == std::errc::result_out_of_range) value = std::strtod(size.c_str(), nullptr);
  }
  if (negative) value = -value;
  return true;
}

bool cast_integer(const Node& node, Node& result) {
  double real = node.real;
  if (node.kind == Kind::string) {
    const std::string text = number_text(node.string);
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, result.integer);
    if (read.ec == std::errc()) return read.ptr == end;
    if (read.ec != std::errc::result_out_of_range || read.ptr != end) return false;
    if (!read_real(text, real)) return false;
  } else if (node.kind != Kind::real) {
    result.integer = node.kind == Kind::boolean ? int64_t{node.boolean} : node.integer;
    return true;
  }
  if (!std::isfinite(real)) return false;
  if (std::abs(real) < 0x1p63) {
    result.integer = static_cast<int64_t>(real);
  } else {  // an integer over 64 bits becomes a float, as everywhere
    result.kind = Kind::real;
    result.real = std::trunc(real);
  }
  return true;
}

bool cast_boolean(const Node& node, Node& result) {
  result.boolean = !node.is_null() && number_of(node) != 0;
  if (node.kind != Kind::string) return true;
  Node read;
  type_override_scalar(node.string, read);
  result.boolean = read.boolean;
  return read.kind == Kind::boolean;
}

}  // namespace

bool read_python_integer(std::string_view text, int64_t& value) {
  const std::string digits = number_text(text);
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

bool is_number(const Node& node) {
  return node.kind == Kind::integer || node.kind == Kind::real || node.kind == Kind::boolean;
}
double number_of(const Node& node) {
  if (node.kind == Kind::real) return node.real;
  return node.kind == Kind::boolean ? static_cast<double>(node.boolean)
                                    : static_cast<double>(node.integer);
}

std::string shown(const Node& node) {
  const std::string text = plain_text(node);
  return "'" + text.substr(0, 100) + (text.size() > 100 ? "..." : "") + "'";
}

Node cast(const Node& node, Kind kind) {
  Node result = node;
  if (node.kind == Kind::list || node.kind == Kind::map) {
    for (Node& item : result.list) item = cast(item, kind);
    for (auto& [key, item] : result.map) item = cast(item, kind);
    return result;
  }
  result = Node();
  result.origin = node.origin;
  result.kind = kind;
  bool fits = !node.is_null() || kind == Kind::boolean;
  if (fits && kind == Kind::integer) {
    fits = cast_integer(node, result);
  } else if (fits && kind == Kind::real) {
    result.real = number_of(node);
    if (node.kind == Kind::string) fits = read_real(node.string, result.real);
  } else if (fits && kind == Kind::boolean) {
    fits = cast_boolean(node, result);
  } else if (fits) {
    result.string = plain_text(node);
  }
  if (!fits) {
    throw std::invalid_argument(shown(node) + " is no " + name_of(kind) + ", expected " +
                                (kind == Kind::boolean  ? "true or false"
                                 : kind == Kind::string ? "a value"
                                                        : "a number"));
  }
  return result;
}

}  // namespace cytra::config
