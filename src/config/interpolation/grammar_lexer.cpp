#include "config/interpolation/grammar_lexer.h"

#include <algorithm>

#include "base/strings.h"
#include "config/interpolation/grammar.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

bool is_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}

}  // namespace

Token Lexer::next() {
  Token token;
  token.begin = at_;
  token.kind = at_ >= text_.size() ? TokenKind::end : read(token.text);
  token.end = at_;
  return token;
}

void Lexer::fail(std::size_t position, const std::string& what) const {
  throw SyntaxError(quote(text_) + " at character " + std::to_string(position + 1) + ": " + what);
}

/// The whole UTF-8 character at the cursor.
std::string Lexer::character() const {
  std::size_t end = at_ + 1;
  while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
  return quote(text_.substr(at_, end - at_));
}

std::size_t Lexer::blanks_at(std::size_t from) const {
  while (from < text_.size() && is_blank(text_[from])) ++from;
  return from;
}

TokenKind Lexer::open_inside() {
  enter(Mode::key, 2);
  at_ = blanks_at(at_);
  return TokenKind::opens_inside;
}

void Lexer::leave(std::size_t position) {
  modes_.pop_back();
  if (modes_.empty()) fail(position, "'}' closes nothing, expected '{' before it");
}

TokenKind Lexer::read(std::string& out) {
  switch (modes_.back()) {
    case Mode::top:
      return read_text('\0', out);
    case Mode::single_quoted:
      return read_text('\'', out);
    case Mode::double_quoted:
      return read_text('"', out);
    case Mode::key:
      return read_key(out);
    case Mode::value:
      break;
  }
  return read_value(out);
}

/// Reads text. Backslashes count only before ${ and, in quotes, before the quote.
TokenKind Lexer::read_text(char quote, std::string& out) {
  if (quote != '\0' && peek() == quote) {
    modes_.pop_back();
    ++at_;
    return TokenKind::closes_quote;
  }
  if (text_.compare(at_, 2, "${") == 0) return open_inside();
  while (at_ < text_.size()) {
    const std::size_t after = std::min(text_.find_first_not_of('\\', at_), text_.size());
    const std::size_t bars = after - at_;
    const bool opens = text_.compare(after, 2, "${") == 0;
    const bool closes = quote != '\0' && after < text_.size() && text_[after] == quote;
    out.append(opens || closes ? bars / 2 : bars, '\\');
    at_ = after;
    if ((opens || closes) && bars % 2 == 0) break;
    if (opens) {
      out += "${";
      at_ += 2;
    } else if (at_ < text_.size()) {
      out += text_[at_++];
    }
  }
  return TokenKind::text;
}

TokenKind Lexer::read_key(std::string& out) {
  const std::size_t after = blanks_at(at_);
  const char first = after < text_.size() ? text_[after] : '\0';
  if (first == '}') {
    leave(after);
    at_ = after + 1;
    return TokenKind::closes_inside;
  }
  if (first == ':') {
    modes_.back() = Mode::value;
    at_ = blanks_at(after + 1);
    return TokenKind::colon;
  }
  if (text_.compare(at_, 2, "${") == 0) return open_inside();
  const std::size_t end = std::min(text_.find_first_of("\\{}()[]:. \t'\"", at_), text_.size());
  if (end > at_) {
    out = text_.substr(at_, end - at_);
    at_ = end;
    const bool is_id = !is_digit(out[0]) && out[0] != '-' && std::ranges::all_of(out, is_name);
    return is_id ? TokenKind::name : TokenKind::key;
  }
  const char c = text_[at_];
  if (c != '.' && c != '[' && c != ']')
    fail(at_, character() + ", expected a key, '.', '[', ':' or '}'");
  ++at_;
  out = c;
  if (c == '.') return TokenKind::dot;
  return c == '[' ? TokenKind::opens_list : TokenKind::closes_list;
}

std::size_t Lexer::name_end() const {
  std::size_t end = at_;
  if (is_letter(peek()) || peek() == '_') {
    while (end < text_.size() && is_name(text_[end])) ++end;
  }
  return end;
}

/// The end of the escaped characters at the cursor, or the cursor.
std::size_t Lexer::escapes(std::string& out) const {
  std::size_t end = at_;
  while (end + 1 < text_.size() && text_[end] == '\\' &&
         std::string_view("\\()[]{}:=, \t").find(text_[end + 1]) != std::string_view::npos) {
    out += text_[end + 1];
    end += 2;
  }
  return end;
}

TokenKind Lexer::read_value(std::string& out) {
  const std::size_t begin = at_, after = blanks_at(at_);
  const char first = after < text_.size() ? text_[after] : '\0';
  const auto take = [&](std::size_t end, TokenKind kind) {
    out = text_.substr(begin, end - begin);
    at_ = end;
    return kind;
  };
  if (first == ',') return take(blanks_at(after + 1), TokenKind::comma);
  if (first == ':') return take(blanks_at(after + 1), TokenKind::colon);
  if (first == ']') return take(after + 1, TokenKind::closes_list);
  if (first == '}') {
    leave(after);
    return take(after + 1, TokenKind::closes_map);
  }
  if (after > at_) return take(after, TokenKind::blank);
  if (text_.compare(at_, 2, "${") == 0) return open_inside();
  if (first == '[') return take(blanks_at(at_ + 1), TokenKind::opens_list);
  if (first == '{') {
    enter(Mode::value, 1);
    return take(blanks_at(at_), TokenKind::opens_map);
  }
  if (first == '\'' || first == '"') {
    enter(first == '"' ? Mode::double_quoted : Mode::single_quoted, 1);
    return TokenKind::opens_quote;
  }
  if (const std::size_t end = escapes(out); end > at_) {
    at_ = end;
    return TokenKind::escape;
  }
  const std::size_t name = name_end();
  const std::size_t number = at_ + override_number_size(text_.substr(at_));
  if (number > at_ && number >= name) return take(number, TokenKind::number);
  if (name > at_) {
    Node typed;
    type_override_scalar(text_.substr(at_, name - at_), typed);
    return take(name, typed.kind == Kind::string ? TokenKind::name : TokenKind::word);
  }
  if (first == '\0' || std::string_view("/-\\+.$%*@?|").find(first) == std::string_view::npos)
    fail(at_, character() + " stands without quotes, expected '...' round it");
  return take(at_ + 1, TokenKind::unquoted);
}

}  // namespace cytra::config
