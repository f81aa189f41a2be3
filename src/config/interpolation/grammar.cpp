#include "config/interpolation/grammar.h"

#include "config/interpolation/grammar_lexer.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr int max_grammar_depth = 64;

class GrammarParser {
 public:
  GrammarParser(std::string_view text, Mode mode) : lexer_(text, mode) { advance(); }

  Element text() {
    Element element = parts();
    expect(TokenKind::end, "the end of the text");
    return element;
  }
  Element argument() {
    Element result = element();
    expect(TokenKind::end, "the end of the text");
    return result;
  }

 private:
  struct NestingLevel {
    explicit NestingLevel(GrammarParser& parser) : parser_(parser) {
      if (++parser_.depth_ > max_grammar_depth)
        parser_.fail("${...}, brackets and quotes nest too deep, expected at most 64 levels");
    }
    ~NestingLevel() { --parser_.depth_; }
    NestingLevel& operator=(NestingLevel&&) = delete;
    GrammarParser& parser_;
  };

  void advance() { token_ = lexer_.next(); }
  [[noreturn]] void fail(const std::string& what) const { lexer_.fail(token_.begin, what); }
  [[noreturn]] void fail_expected(const std::string& expected) const {
    const std::string found =
        token_.kind == TokenKind::end ? "the end" : quote(lexer_.source(token_.begin, token_.end));
    fail(found + ", expected " + expected);
  }
  void expect(TokenKind kind, const char* expected) {
    if (token_.kind != kind) fail_expected(expected);
    if (kind != TokenKind::end) advance();
  }
  static void append(std::vector<Piece>& parts, const std::string& text) {
    if (!parts.empty() && parts.back().inside == nullptr) {
      parts.back().text += text;
    } else {
      parts.push_back({text, nullptr});
    }
  }

  Element parts() {
    Element element;
    while (token_.kind == TokenKind::text || token_.kind == TokenKind::opens_inside) {
      if (token_.kind == TokenKind::text) {
        append(element.parts, token_.text);
        advance();
      } else {
        element.parts.push_back({"", interpolation()});
      }
    }
    return element;
  }

  std::shared_ptr<const Interpolation> interpolation() {
    const NestingLevel deeper(*this);
    const std::size_t begin = token_.begin;
    auto result = std::make_shared<Interpolation>();
    advance();
    bool callable = true;
    for (; token_.kind == TokenKind::dot; callable = false) take(*result);
    if (token_.kind == TokenKind::opens_list) {
      bracket(*result);
      callable = false;
    } else {
      key(*result, callable);
    }
    while (token_.kind == TokenKind::dot || token_.kind == TokenKind::opens_list) {
      if (token_.kind == TokenKind::opens_list) {
        bracket(*result);
        callable = false;
      } else {
        take(*result);
        key(*result, callable);
      }
    }
    std::size_t end = token_.end;
    if (token_.kind == TokenKind::colon && callable) {
      advance();
      result->is_call = true;
      result->arguments = sequence(TokenKind::closes_map);
      end = token_.end;
      expect(TokenKind::closes_map, "'}'");
    } else {
      expect(TokenKind::closes_inside, "'}'");
    }
    result->source = lexer_.source(begin, end);
    return result;
  }
  void take(Interpolation& to) {
    append(to.name, token_.text);
    advance();
  }
  void bracket(Interpolation& to) {
    take(to);
    bool callable = false;
    key(to, callable);
    if (token_.kind != TokenKind::closes_list) fail_expected("']'");
    take(to);
  }
  void key(Interpolation& to, bool& callable) {
    if (token_.kind == TokenKind::opens_inside) {
      to.name.push_back({"", interpolation()});
    } else if (token_.kind == TokenKind::name || token_.kind == TokenKind::key) {
      callable = callable && token_.kind == TokenKind::name;
      take(to);
    } else {
      fail_expected("a key");
    }
  }

  /// Reads elements between commas; nothing between two commas is empty text.
  std::vector<Element> sequence(TokenKind close) {
    std::vector<Element> result;
    if (token_.kind == close) return result;
    bool after_comma = true;
    while (token_.kind != close) {
      if (token_.kind == TokenKind::comma) {
        if (after_comma) result.emplace_back();
        after_comma = true;
        advance();
      } else {
        if (!after_comma) fail_expected("','");
        result.push_back(element());
        after_comma = false;
      }
    }
    if (after_comma) result.emplace_back();
    return result;
  }

  Element element() {
    const NestingLevel deeper(*this);
    Element result;
    if (token_.kind == TokenKind::opens_quote) {
      const std::size_t begin = token_.begin;
      advance();
      result = parts();
      result.quoted = true;
      if (token_.kind != TokenKind::closes_quote)
        lexer_.fail(begin, "a quote opens, expected its end");
      advance();
    } else if (token_.kind == TokenKind::opens_list) {
      advance();
      result.kind = Element::Kind::list;
      result.items = sequence(TokenKind::closes_list);
      expect(TokenKind::closes_list, "']'");
    } else if (token_.kind == TokenKind::opens_map) {
      advance();
      result.kind = Element::Kind::map;
      while (token_.kind != TokenKind::closes_map) {
        if (!result.keys.empty()) expect(TokenKind::comma, "',' or '}'");
        Element key = primitive(false);
        if (key.kind == Element::Kind::text)
          key.scalar = Node::make_string(key.parts.empty() ? "" : key.parts[0].text);
        expect(TokenKind::colon, "':'");
        result.keys.push_back(std::move(key.scalar));
        result.items.push_back(element());
      }
      advance();
    } else {
      result = primitive(true);
    }
    return result;
  }

  /// Reads a primitive: a single token keeps its type, several are text.
  Element primitive(bool is_value) {
    Element result;
    std::size_t count = 0;
    Token only;
    for (;; ++count) {
      const TokenKind kind = token_.kind;
      if (kind == TokenKind::opens_inside && is_value) {
        result.parts.push_back({"", interpolation()});
        continue;
      }
      if (kind != TokenKind::name && kind != TokenKind::word && kind != TokenKind::number &&
          kind != TokenKind::unquoted && kind != TokenKind::escape && kind != TokenKind::blank &&
          (kind != TokenKind::colon || !is_value)) {
        break;
      }
      if (count == 0) only = token_;
      append(result.parts, token_.text);
      advance();
    }
    if (count == 0) fail_expected("a value");
    if (count == 1 && only.kind == TokenKind::blank)
      lexer_.fail(only.begin, "only blanks, expected a value");
    if (count == 1 && (only.kind == TokenKind::number || only.kind == TokenKind::word)) {
      result.kind = Element::Kind::scalar;
      type_override_scalar(only.text, result.scalar);
    }
    return result;
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

Element parse_interpolated(std::string_view text) {
  return GrammarParser(text, Mode::top).text();
}

Element parse_argument(std::string_view text) {
  return GrammarParser(text, Mode::value).argument();
}

}  // namespace cytra::config
