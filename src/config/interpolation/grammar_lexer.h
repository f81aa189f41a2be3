#pragma once
// Tokens of text with ${...}, for grammar.cpp alone. Source: OmegaConf 2.3's
// OmegaConfGrammarLexer.g4.
#include <string>
#include <string_view>
#include <vector>

namespace cytra::config {

/// The lexer's place: plain text, arguments of ${name:...}, the key of ${...}, quotes.
enum class Mode { top, value, key, single_quoted, double_quoted };
enum class TokenKind {
  text,  // literal characters, escapes already removed
  opens_inside,
  opens_map,
  closes_map,
  opens_quote,
  closes_quote,
  comma,
  opens_list,
  closes_list,
  colon,
  number,
  word,  // true, false, null
  unquoted,
  name,
  escape,
  blank,
  closes_inside,
  dot,
  key,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t begin = 0, end = 0;
  std::string text;
};

/// A lexer with the rules of ANTLR's: the longest match wins, then the rule that comes first in
/// the grammar.
class Lexer {
 public:
  Lexer(std::string_view text, Mode mode) : text_(text), modes_{mode} {}

  /// Reads the next token. Throws: SyntaxError for a character that no rule accepts.
  Token next();
  [[noreturn]] void fail(std::size_t position, const std::string& what) const;
  std::string_view source(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::string character() const;
  std::size_t blanks_at(std::size_t from) const;
  void enter(Mode mode, std::size_t length) {
    modes_.push_back(mode);
    at_ += length;
  }
  TokenKind open_inside();
  void leave(std::size_t position);
  TokenKind read(std::string& out);
  TokenKind read_text(char quote, std::string& out);
  TokenKind read_key(std::string& out);
  TokenKind read_value(std::string& out);
  std::size_t escapes(std::string& out) const;
  std::size_t name_end() const;

  std::string_view text_;
  std::vector<Mode> modes_;
  std::size_t at_ = 0;
};

}  // namespace cytra::config
