#include "config/text/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/strings.h"

namespace cytra::config {
namespace {

/// A cursor over text; each take_... moves on when it matches.
struct Cursor {
  std::string_view rest;

  bool done() const { return rest.empty(); }
  bool take(char c) {
    if (rest.empty() || rest[0] != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  std::size_t take_while(auto test) {
    std::size_t count = 0;
    while (count < rest.size() && test(rest[count])) ++count;
    rest.remove_prefix(count);
    return count;
  }
  bool take_sign() { return take('-') || take('+'); }
  /// Takes digits: 12, 1_000; a '_' may be between digits only.
  bool take_digits() {
    if (rest.empty() || !is_digit(rest[0])) return false;
    std::size_t end = 1;
    while (end < rest.size() &&
           (is_digit(rest[end]) ||
            (rest[end] == '_' && end + 1 < rest.size() && is_digit(rest[end + 1])))) {
      ++end;
    }
    rest.remove_prefix(end);
    return true;
  }
  bool take_exponent(bool sign_needed = false, bool bars = false) {
    const std::string_view before = rest;
    if ((take('e') || take('E')) && (take_sign() || !sign_needed) &&
        (bars ? take_digits() : take_while(is_digit) > 0))
      return true;
    rest = before;
    return false;
  }
};

bool is_yaml_float(std::string_view text) {
  Cursor at{text};
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  const bool sign = at.take_sign();
  if (at.rest == ".inf" || at.rest == ".Inf" || at.rest == ".INF") return true;
  // PyYAML takes '_' anywhere after a digit, OmegaConf an exponent without a sign: 1_.5, 1e3.
  const auto digit_or_bar = [](char c) { return is_digit(c) || c == '_'; };
  const auto take_digits = [&] {
    return !at.done() && is_digit(at.rest[0]) && at.take_while(digit_or_bar) > 0;
  };
  if (!sign && at.take('.')) {
    if (!take_digits()) return false;
    at.take_exponent(true);
    return at.done();
  }
  Cursor strict = at;
  if (!take_digits()) return false;
  const bool loose = !strict.take_digits() || strict.rest.size() != at.rest.size();
  if (at.take_exponent()) return !loose && at.done();
  bool sexagesimal = false;
  while (at.take(':')) {
    sexagesimal = true;
    const std::size_t count = std::min<std::size_t>(Cursor{at.rest}.take_while(is_digit), 3);
    if (count == 0 || count > 2 || (count == 2 && at.rest[0] > '5')) return false;
    at.rest.remove_prefix(count);
  }
  if (!at.take('.')) return false;
  at.take_while(digit_or_bar);
  if (!sexagesimal) at.take_exponent(loose);
  return at.done();
}

/// The base of a YAML 1.1 integer, 60 for 1:30; 0 when `text` is none.
int yaml_integer_base(std::string_view text) {
  Cursor at{text};
  at.take_sign();
  const std::string_view digits = at.rest;
  const auto all = [&](std::size_t from, auto test) {
    return digits.size() > from &&
           std::all_of(digits.begin() + static_cast<std::ptrdiff_t>(from), digits.end(), test);
  };
  if (digits == "0") return 10;
  if (digits.empty() || !is_digit(digits[0])) return 0;
  if (digits[0] == '0') {
    if (digits[1] == 'b')
      return all(2, [](char c) { return c == '0' || c == '1' || c == '_'; }) ? 2 : 0;
    if (digits[1] == 'x')
      return all(2, [](char c) { return std::isxdigit(c) || c == '_'; }) ? 16 : 0;
    return all(1, [](char c) { return (c >= '0' && c <= '7') || c == '_'; }) ? 8 : 0;
  }
  at.take_while([](char c) { return is_digit(c) || c == '_'; });
  if (at.done()) return 10;
  while (at.take(':')) {
    const std::size_t count = Cursor{at.rest}.take_while(is_digit);
    if (count == 0 || count > 2 || (count == 2 && at.rest[0] > '5')) return 0;
    at.rest.remove_prefix(count);
  }
  return at.done() ? 60 : 0;
}

double parse_real(std::string_view text) {
  std::string clean = in_small_letters(without_underscores(text));
  const bool negative = clean[0] == '-';
  if (negative || clean[0] == '+') clean.erase(0, 1);
  double value = 0;
  if (clean == ".inf" || clean == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (clean == ".nan" || clean == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    for (std::size_t start = 0; start <= clean.size();) {
      const std::size_t end = std::min(clean.find(':', start), clean.size());
      double part = 0;
      const auto read = std::from_chars(clean.data() + start, clean.data() + end, part);
      // from_chars leaves `part` alone when out of range; strtod gives infinity or 0 as Python
      // does.
      if (read.ec == std::errc::result_out_of_range)
        part = std::strtod(clean.c_str() + start, nullptr);
      value = value * 60 + part;
      start = end + 1;
    }
  }
  return negative ? -value : value;
}

void set_real(double value, Node& node) {
  node.kind = Kind::real;
  node.real = value;
}

void set_integer(std::string_view text, int base, Node& node) {
  std::string clean = without_underscores(text);
  const bool negative = clean[0] == '-';
  if (clean[0] == '+' || negative) clean.erase(0, 1);
  if (base == 2 || base == 16) clean.erase(0, 2);
  if (base == 60) return set_real(parse_real(text), node);
  if (negative) clean.insert(0, 1, '-');
  int64_t value = 0;
  const auto read = std::from_chars(clean.data(), clean.data() + clean.size(), value, base);
  if (read.ec == std::errc::result_out_of_range) return set_real(parse_real(text), node);
  node.kind = Kind::integer;
  node.integer = value;
}

void set_boolean(bool value, Node& node) {
  node.kind = Kind::boolean;
  node.boolean = value;
}

/// Whether `text` is `word` in lower, Title or UPPER case.
bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  bool lower = true, title = true, upper = true;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char big = static_cast<char>(word[i] - 'a' + 'A');
    lower = lower && text[i] == word[i];
    upper = upper && text[i] == big;
    title = title && text[i] == (i == 0 ? big : word[i]);
  }
  return lower || title || upper;
}

bool same_letters(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

}  // namespace

void type_yaml_scalar(std::string_view text, Node& node) {
  node.kind = Kind::string;
  node.string = text;
  if (text.empty() || text == "~" || is_word(text, "null")) {
    node.kind = Kind::null;
  } else if (is_word(text, "true") || is_word(text, "yes") || is_word(text, "on")) {
    set_boolean(true, node);
  } else if (is_word(text, "false") || is_word(text, "no") || is_word(text, "off")) {
    set_boolean(false, node);
  } else if (is_digit(text[0]) || text[0] == '-' || text[0] == '+' || text[0] == '.') {
    if (is_yaml_float(text)) {
      set_real(parse_real(text), node);
    } else if (const int base = yaml_integer_base(text)) {
      set_integer(text, base, node);
      if (base == 60 && std::abs(node.real) < 9e15) {
        node.kind = Kind::integer;
        node.integer = static_cast<int64_t>(node.real);
      }
    }
  }
  if (node.kind != Kind::string) node.string.clear();
}

std::size_t override_number_size(std::string_view text) {
  Cursor at{text};
  at.take_sign();
  const std::string_view size = at.rest;
  if (same_letters(size.substr(0, 3), "inf") || same_letters(size.substr(0, 3), "nan"))
    return text.size() - size.size() + 3;
  const bool whole = at.take('0') || at.take_digits();
  const bool fraction = at.take('.') && at.take_digits();
  if (!whole && !fraction) return 0;
  at.take_exponent(false, true);
  return text.size() - at.rest.size();
}

void type_override_scalar(std::string_view text, Node& node) {
  node.kind = Kind::string;
  if (same_letters(text, "null")) {
    node.kind = Kind::null;
  } else if (same_letters(text, "true") || same_letters(text, "false")) {
    set_boolean(text.size() == 4, node);
  } else if (text.empty() || override_number_size(text) < text.size()) {
    node.string = text;
  } else if (text.find_first_of(".eEnN") == std::string_view::npos) {
    set_integer(text, 10, node);
  } else {
    set_real(parse_real(text), node);
  }
}

std::string without_underscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const double size = std::abs(value);
  const auto format = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific
                                                                 : std::chars_format::fixed;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quote(std::string_view text) {
  std::size_t size = std::min<std::size_t>(text.size(), 200);
  while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) --size;
  std::string result(text.substr(0, size));
  std::ranges::replace_if(result, is_control, ' ');
  return "'" + result + (size < text.size() ? "...'" : "'");
}

std::string plain_text(const Node& node) {
  switch (node.kind) {
    case Kind::string:
      return node.string;
    case Kind::real:
      return real_text(node.real);
    default:
      return to_json(node);
  }
}

}  // namespace cytra::config
