#pragma once
// Tokens of ${eval:...}, for expression.cpp alone. Source: Python 3's language reference,
// section 2.
#include <string>
#include <string_view>

#include "config/interpolation/value.h"

namespace cytra::config {

enum class SymbolType { number, text, name, other, end };

struct Symbol {
  SymbolType type = SymbolType::end;
  std::size_t position = 0;
  std::string text;  // as written; of a text its contents
  Value number;
};

class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {}
  /// Reads the next symbol. Throws: ConfigError.
  Symbol next();
  /// Throws: ConfigError that shows the expression, the position and what is wrong there.
  [[noreturn]] void fail(std::size_t position, const std::string& what) const;

 private:
  void skip_blanks();
  std::string character() const;
  std::string_view digits(bool (*test)(char));
  Value number();
  Value integer(std::size_t begin, std::string_view digits, int base) const;
  std::string literal();
  void escape(std::string& out);

  const std::string& text_;
  std::size_t at_ = 0;
  int open_ = 0;  // brackets: a line may end inside them
  bool started_ = false;
};

}  // namespace cytra::config
