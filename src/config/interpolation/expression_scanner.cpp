#include "config/interpolation/expression_scanner.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/escape.h"
#include "base/strings.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_name_char(char c) {
  return is_digit(c) || is_letter(c) || c == '_';
}

}  // namespace

void Scanner::fail(std::size_t position, const std::string& what) const {
  throw ConfigError("the expression " + quote(text_) + " at character " +
                    std::to_string(position + 1) + ": " + what);
}

/// Skips blanks and comments; a line may end before the expression, inside brackets and after the
/// end.
void Scanner::skip_blanks() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
    } else if (c == '\n' || c == '\r') {
      const bool is_last = text_.find_first_not_of(" \t\f\r\n", at_) == std::string::npos;
      if (open_ == 0 && started_ && !is_last)
        fail(at_, "the line ends, expected one line or brackets round it");
    } else if (c != ' ' && c != '\t' && c != '\f') {
      break;
    }
  }
}

std::string Scanner::character() const {
  std::size_t end = at_ + 1;
  while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
  return quote(std::string_view(text_).substr(at_, end - at_));
}

Symbol Scanner::next() {
  skip_blanks();
  started_ = true;
  Symbol symbol;
  symbol.position = at_;
  if (at_ >= text_.size()) return symbol;
  const char c = text_[at_];
  if (c == '\'' || c == '"') {
    symbol.type = SymbolType::text;
    symbol.text = literal();
  } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    symbol.type = SymbolType::number;
    symbol.number = number();
    symbol.text = text_.substr(symbol.position, at_ - symbol.position);
    if (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '.'))
      fail(at_, character() + " after a number, expected an operator");
  } else if (is_name_char(c)) {
    symbol.type = SymbolType::name;
    while (at_ < text_.size() && is_name_char(text_[at_])) symbol.text += text_[at_++];
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"'))
      fail(symbol.position, "letters before a quote, expected plain text in quotes");
  } else {
    symbol.type = SymbolType::other;
    for (const char* two : {"**", "//", "==", "!=", "<=", ">="}) {
      if (text_.compare(at_, 2, two) == 0) symbol.text = two;
    }
    if (symbol.text.empty()) symbol.text = c;
    if (symbol.text.size() == 1 &&
        std::string_view("+-*/%<>()[],").find(c) == std::string_view::npos) {
      fail(at_, character() + ", expected a value or an operator");
    }
    if (c == '(' || c == '[') ++open_;
    if (c == ')' || c == ']') --open_;
    at_ += symbol.text.size();
  }
  return symbol;
}

/// Reads digits with single '_' between them.
std::string_view Scanner::digits(bool (*test)(char)) {
  const std::size_t begin = at_;
  while (at_ < text_.size() &&
         (test(text_[at_]) || (text_[at_] == '_' && at_ > begin && text_[at_ - 1] != '_' &&
                               at_ + 1 < text_.size() && test(text_[at_ + 1])))) {
    ++at_;
  }
  return std::string_view(text_).substr(begin, at_ - begin);
}

Value Scanner::integer(std::size_t begin, std::string_view digits, int base) const {
  const std::string clean = without_underscores(digits);
  int64_t value = 0;
  const char* end = clean.data() + clean.size();
  const auto read = std::from_chars(clean.data(), end, value, base);
  if (read.ec == std::errc::result_out_of_range)
    fail(begin, "an integer over 64 bits, expected at most 9223372036854775807");
  if (read.ec != std::errc() || read.ptr != end) fail(begin, "expected a number");
  return Value::make_integer(value);
}

Value Scanner::number() {
  const std::size_t begin = at_;
  const char kind = at_ + 1 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : ' ';
  if (text_[at_] == '0' && (kind == 'x' || kind == 'o' || kind == 'b')) {
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '_') ++at_;
    return integer(begin, digits(is_hex), kind == 'x' ? 16 : kind == 'o' ? 8 : 2);
  }
  const std::string_view whole = digits(is_digit);
  bool is_real = false;
  if (at_ < text_.size() && text_[at_] == '.') {
    is_real = true;
    ++at_;
    digits(is_digit);
  }
  std::size_t power = at_ + 1;
  if (power < text_.size() && (text_[power] == '+' || text_[power] == '-')) ++power;
  if (at_ < text_.size() && (text_[at_] | 0x20) == 'e' && power < text_.size() &&
      is_digit(text_[power])) {
    is_real = true;
    at_ = power;
    digits(is_digit);
  }
  if (is_real) {
    const std::string clean =
        without_underscores(std::string_view(text_).substr(begin, at_ - begin));
    double value = 0;
    const auto read = std::from_chars(clean.data(), clean.data() + clean.size(), value);
    if (read.ec == std::errc::result_out_of_range) value = std::strtod(clean.c_str(), nullptr);
    return Value::make_real(value);
  }
  if (whole[0] == '0' && whole.find_first_not_of("0_") != std::string_view::npos)
    fail(begin, "an integer begins with 0, expected 0o in front of octal digits");
  return integer(begin, whole, 10);
}

std::string Scanner::literal() {
  const std::size_t begin = at_;
  std::string quotes(1, text_[at_]);
  if (text_.compare(at_, 3, std::string(3, quotes[0])) == 0) quotes.append(2, quotes[0]);
  at_ += quotes.size();
  std::string out;
  for (;;) {
    if (at_ >= text_.size() || (quotes.size() == 1 && text_[at_] == '\n'))
      fail(begin, "a quote opens, expected its end");
    if (text_.compare(at_, quotes.size(), quotes) == 0) break;
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      ++at_;
      escape(out);
    } else {
      out += text_[at_++];
    }
  }
  at_ += quotes.size();
  return out;
}
/// Reads what follows a backslash.
void Scanner::escape(std::string& out) {
  constexpr std::string_view letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
  const char c = text_[at_];
  const std::size_t place = letters.find(c);
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (place != std::string_view::npos) {
    out += meanings[place];
    ++at_;
  } else if (c >= '0' && c <= '7') {
    uint32_t point = 0;
    for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
      point = point * 8 + static_cast<uint32_t>(text_[at_++] - '0');
    append_utf8(point, out);
  } else if (digits > 0) {
    uint32_t point = 0;
    const char* end = text_.data() + std::min(text_.size(), at_ + 1 + digits);
    const auto read = std::from_chars(text_.data() + at_ + 1, end, point, 16);
    if (read.ptr != text_.data() + at_ + 1 + digits || point > 0x10FFFF ||
        (point >= 0xD800 && point < 0xE000))
      fail(at_, "a bad escape, expected \\xHH, \\uHHHH or \\UHHHHHHHH");
    append_utf8(point, out);
    at_ += digits + 1;
  } else if (c == '\n') {
    ++at_;
  } else if (c == 'N') {
    fail(at_, "\\N is not supported, expected \\u and four digits");
  } else {
    out += '\\';
    out += c;
    ++at_;
  }
}

}  // namespace cytra::config
