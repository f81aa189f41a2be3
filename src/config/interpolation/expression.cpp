#include "config/interpolation/expression.h"

#include "base/error.h"
#include "config/interpolation/expression_scanner.h"
#include "config/interpolation/operations.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr std::size_t max_length = 10'000;
constexpr int max_expression_depth = 64;

/// A part of the expression. Operators of one level are in one list, so that long sums are not
/// nested.
struct Term {
  enum class Kind {
    literal,
    name,
    list,
    tuple,
    chain,
    compare,
    all,
    any,
    inverse,
    sign,
    choice,
    item,
    call
  };
  Kind kind = Kind::literal;
  std::size_t position = 0;
  Value value;       // literal
  std::string name;  // name, call, sign
  std::vector<Term> parts;
  std::vector<std::string> operators;  // between the parts of a chain or comparison
  std::vector<std::size_t> positions;  // of the operators
};

class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& text) : scanner_(text) { advance(); }

  Term whole() {
    Term term = tuple_or_one();
    if (symbol_.type != SymbolType::end) fail_expected("an operator or the end");
    return term;
  }

 private:
  void advance() { symbol_ = scanner_.next(); }
  bool at(const char* text) const {
    return (symbol_.type == SymbolType::other || symbol_.type == SymbolType::name) &&
           symbol_.text == text;
  }
  [[noreturn]] void fail_expected(const std::string& expected) const {
    const std::string found =
        symbol_.type == SymbolType::end ? "the expression ends" : quote(symbol_.text);
    scanner_.fail(symbol_.position, found + ", expected " + expected);
  }
  void expect(const char* text) {
    if (!at(text)) fail_expected(quote(text));
    advance();
  }
  Term make(Term::Kind kind) const {
    Term term;
    term.kind = kind;
    term.position = symbol_.position;
    return term;
  }

  /// Reads `a, b, c` or one value; a comma at the end is allowed.
  Term tuple_or_one() {
    Term tuple = make(Term::Kind::tuple);
    tuple.parts.push_back(choice());
    if (!at(",")) return std::move(tuple.parts[0]);
    while (at(",")) {
      advance();
      if (symbol_.type == SymbolType::end || at(")")) break;
      tuple.parts.push_back(choice());
    }
    return tuple;
  }

  Term choice() {
    if (++depth_ > max_expression_depth)
      scanner_.fail(symbol_.position, "nested too deep, expected at most 64 levels");
    Term value = logic("or", Term::Kind::any);
    if (at("if")) {
      Term term = make(Term::Kind::choice);
      advance();
      term.parts.push_back(logic("or", Term::Kind::any));
      expect("else");
      term.parts.push_back(std::move(value));
      term.parts.push_back(choice());
      value = std::move(term);
    }
    --depth_;
    return value;
  }

  Term logic(const char* word, Term::Kind kind) {
    const bool is_or = kind == Term::Kind::any;
    const auto part = [&] { return is_or ? logic("and", Term::Kind::all) : inverse(); };
    Term term = make(kind);
    term.parts.push_back(part());
    while (at(word)) {
      advance();
      term.parts.push_back(part());
    }
    return term.parts.size() == 1 ? std::move(term.parts[0]) : std::move(term);
  }

  Term inverse() {
    std::size_t count = 0;
    Term term = make(Term::Kind::inverse);
    for (; at("not"); ++count) advance();
    if (count == 0) return comparison();
    Term inner = comparison();
    // not not x is the truth of x.
    if (count % 2 == 0) {
      Term once = term;
      once.parts.push_back(std::move(inner));
      inner = std::move(once);
    }
    term.parts.push_back(std::move(inner));
    return term;
  }

  void add_operator(Term& term, std::string text) {
    term.positions.push_back(symbol_.position);
    term.operators.push_back(std::move(text));
    advance();
  }

  Term comparison() {
    Term term = make(Term::Kind::compare);
    term.parts.push_back(sum());
    for (;;) {
      bool found = false;
      for (const char* op : {"==", "!=", "<", "<=", ">", ">=", "in", "is", "not"})
        found = found || at(op);
      if (!found) break;
      const bool is_not = at("not");
      add_operator(term, symbol_.text);
      if (is_not) {
        expect("in");
        term.operators.back() = "not in";
      } else if (term.operators.back() == "is" && at("not")) {
        advance();
        term.operators.back() = "is not";
      }
      term.parts.push_back(sum());
    }
    return term.parts.size() == 1 ? std::move(term.parts[0]) : std::move(term);
  }

  Term sum() {
    Term term = make(Term::Kind::chain);
    term.parts.push_back(product());
    while (at("+") || at("-")) {
      add_operator(term, symbol_.text);
      term.parts.push_back(product());
    }
    return term.parts.size() == 1 ? std::move(term.parts[0]) : std::move(term);
  }

  Term product() {
    Term term = make(Term::Kind::chain);
    term.parts.push_back(factor());
    while (at("*") || at("/") || at("//") || at("%")) {
      add_operator(term, symbol_.text);
      term.parts.push_back(factor());
    }
    return term.parts.size() == 1 ? std::move(term.parts[0]) : std::move(term);
  }

  Term factor() {
    if (++depth_ > max_expression_depth)
      scanner_.fail(symbol_.position, "nested too deep, expected at most 64 levels");
    Term term = make(Term::Kind::sign);
    if (at("+") || at("-")) {
      term.name = symbol_.text;
      advance();
      term.parts.push_back(factor());
    } else {
      term = power();
    }
    --depth_;
    return term;
  }

  Term power() {
    Term base = postfix();
    if (!at("**")) return base;
    Term term = make(Term::Kind::chain);
    term.parts.push_back(std::move(base));
    add_operator(term, "**");
    term.parts.push_back(factor());
    return term;
  }

  Term postfix() {
    Term value = atom();
    if (!at("[")) return value;
    Term term = make(Term::Kind::item);
    term.parts.push_back(std::move(value));
    while (at("[")) {
      term.positions.push_back(symbol_.position);
      advance();
      term.parts.push_back(choice());
      expect("]");
    }
    return term;
  }

  Term atom() {
    Term term = make(Term::Kind::literal);
    if (symbol_.type == SymbolType::number) {
      term.value = symbol_.number;
      advance();
      return term;
    }
    if (symbol_.type == SymbolType::text) {
      std::string text;
      for (; symbol_.type == SymbolType::text; advance()) text += symbol_.text;
      term.value = Value::make_text(std::move(text));
      return term;
    }
    if (at("(")) {
      advance();
      if (at(")")) {
        term.kind = Term::Kind::tuple;
      } else {
        term = tuple_or_one();
      }
      expect(")");
      return term;
    }
    if (at("[")) {
      advance();
      term.kind = Term::Kind::list;
      items("]", term);
      return term;
    }
    if (symbol_.type != SymbolType::name) fail_expected("a value");
    return word();
  }

  void items(const char* close, Term& term) {
    while (!at(close)) {
      term.parts.push_back(choice());
      if (!at(",")) break;
      advance();
    }
    expect(close);
  }

  Term word() {
    Term term = make(Term::Kind::literal);
    const std::string name = symbol_.text;
    for (const char* keyword : {"and", "or", "not", "if", "else", "in", "is", "lambda", "for"}) {
      if (name == keyword) fail_expected("a value");
    }
    advance();
    if (name == "True" || name == "true" || name == "False" || name == "false") {
      term.value = Value::make_boolean(name == "True" || name == "true");
    } else if (name != "None" && name != "null") {
      term.name = name;
      term.kind = Term::Kind::name;
      if (at("(")) {
        advance();
        term.kind = Term::Kind::call;
        items(")", term);
      }
    }
    return term;
  }

  Scanner scanner_;
  Symbol symbol_;
  int depth_ = 0;
};

class Evaluator {
 public:
  explicit Evaluator(const std::string& text) : scanner_(text) {}

  Value value(const Term& term) {
    switch (term.kind) {
      case Term::Kind::literal:
        return term.value;
      case Term::Kind::name:
        scanner_.fail(
            term.position,
            "unknown name " + quote(term.name) + ", expected a value (text stands in quotes)");
      case Term::Kind::list:
      case Term::Kind::tuple: {
        std::vector<Value> items;
        for (const Term& part : term.parts) items.push_back(value(part));
        return Value::make_list(
            std::move(items),
            term.kind == Term::Kind::list ? Value::Kind::list : Value::Kind::tuple);
      }
      case Term::Kind::all:
      case Term::Kind::any: {
        Value result;
        for (const Term& part : term.parts) {
          result = value(part);
          if (Operations::is_true(result) == (term.kind == Term::Kind::any)) break;
        }
        return result;
      }
      case Term::Kind::inverse:
        return Value::make_boolean(!Operations::is_true(value(term.parts[0])));
      case Term::Kind::choice:
        return value(term.parts[Operations::is_true(value(term.parts[0])) ? 1 : 2]);
      case Term::Kind::compare:
        return compared(term);
      default:
        break;
    }
    if (term.kind == Term::Kind::call && !Operations::is_function(term.name)) {
      scanner_.fail(
          term.position,
          "unknown function " + quote(term.name) + ", expected a known one." +
              suggestion(term.name, {"abs", "float", "int", "len", "max", "min", "round", "str"}));
    }
    std::vector<Value> parts;
    for (const Term& part : term.parts) parts.push_back(value(part));
    if (term.kind == Term::Kind::call)
      return guarded(term.position, [&] { return operations_.call(term.name, parts); });
    if (term.kind == Term::Kind::sign)
      return guarded(term.position, [&] { return operations_.unary(term.name, parts[0]); });
    Value result = std::move(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      result = guarded(term.positions[i - 1], [&] {
        return term.kind == Term::Kind::item
                   ? operations_.item(result, parts[i])
                   : operations_.binary(term.operators[i - 1], result, parts[i]);
      });
    }
    return result;
  }

 private:
  /// Evaluates a < b < c: each pair must hold, and nothing after a false pair is evaluated.
  Value compared(const Term& term) {
    Value left = value(term.parts[0]), result;
    for (std::size_t i = 1; i < term.parts.size(); ++i) {
      Value right = value(term.parts[i]);
      result = guarded(term.positions[i - 1],
                       [&] { return operations_.binary(term.operators[i - 1], left, right); });
      if (!result.boolean) break;
      left = std::move(right);
    }
    return result;
  }
  template <class Operation>
  Value guarded(std::size_t position, Operation operation) {
    try {
      return operation();
    } catch (const OperationError& error) {
      scanner_.fail(position, error.what());
    }
  }

  Scanner scanner_;  // for messages
  Operations operations_;
};

}  // namespace

Value evaluate_expression(const std::string& text) {
  if (text.size() > max_length)
    throw ConfigError("the expression " + quote(text.substr(0, 50)) +
                      " is too long, expected at most 10,000 characters");
  const Term term = ExpressionParser(text).whole();
  return Evaluator(text).value(term);
}

}  // namespace cytra::config
