#include "config/interpolation/expression.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "base/strings.h"
#include "config/text/cast.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr std::size_t max_length = 10'000;
constexpr int max_expression_depth = 64;
const std::string a_value = "a value";

/// The number of a value; it holds each integer of 64 bits exactly.
long double exact_number(const Value& value) {
  if (value.kind == Value::Kind::real) return value.real;
  return value.kind == Value::Kind::boolean ? int64_t{value.boolean} : value.integer;
}
bool is_text_or_list(const Value& value) {
  return value.is_text() || value.kind == Value::Kind::list;
}
bool is_true(const Value& value) {
  return value.is_number() ? exact_number(value) != 0 : !value.text.empty() || !value.items.empty();
}

bool equal_values(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return exact_number(a) == exact_number(b);
  return a.kind == b.kind && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal_values);
}

Value joined(Value a, const Value& b) {
  a.text += b.text;
  a.items.insert(a.items.end(), b.items.begin(), b.items.end());
  return a;
}

double calculate_reals(std::string_view operation, double a, double b) {
  if (operation == "+") return a + b;
  if (operation == "-") return a - b;
  if (operation == "*") return a * b;
  if (operation == "/") return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (operation == "%") return rest == 0 ? std::copysign(0.0, b) : rest;
  const double parts = std::round((a - rest) / b);
  return parts == 0 ? std::copysign(0.0, a / b) : parts;
}

/// Computes + - * // %.
Value calculate_integers(std::string_view operation, int64_t a, int64_t b) {
  __extension__ using Wide = __int128;
  const Wide x = a, y = b;
  Wide result = operation == "+" ? x + y : operation == "-" ? x - y : x * y;
  if (operation == "//" || operation == "%") {
    const Wide rest = (x % y + y) % y;  // with the sign of y
    result = operation == "%" ? rest : (x - rest) / y;
  }
  if (result != static_cast<int64_t>(result))
    throw std::invalid_argument(
        "an integer over 64 bits, expected a smaller one (1.0 * makes it a real number)");
  return Value::make_integer(static_cast<int64_t>(result));
}

Value calculate_numbers(std::string_view operation, const Value& a, const Value& b) {
  const long double x = exact_number(a), y = exact_number(b);
  if (y == 0 && operation.find_first_of("/%") == 0)
    throw std::invalid_argument("division by zero, expected another number");
  if (operation == "/" || a.kind == Value::Kind::real || b.kind == Value::Kind::real)
    return Value::make_real(
        calculate_reals(operation, static_cast<double>(x), static_cast<double>(y)));
  return calculate_integers(operation, static_cast<int64_t>(x), static_cast<int64_t>(y));
}

/// Computes one of + - * / // % == != < <= > >=.
Value calculate(std::string_view operation, const Value& a, const Value& b) {
  const char first = operation[0];
  const bool are_numbers = a.is_number() && b.is_number();
  if (first == '=' || first == '!')
    return Value::make_boolean(equal_values(a, b) == (first == '='));
  const bool is_order = first == '<' || first == '>';
  if (is_order && (are_numbers || (a.is_text() && b.is_text()))) {
    const std::partial_ordering order =
        are_numbers ? exact_number(a) <=> exact_number(b) : a.text <=> b.text;
    const bool is_strict = first == '<' ? order < 0 : order > 0;
    return Value::make_boolean(is_strict || (operation.size() == 2 && order == 0));
  }
  if (are_numbers) return calculate_numbers(operation, a, b);
  if (first == '+' && is_text_or_list(a) && a.kind == b.kind) return joined(a, b);
  throw std::invalid_argument(std::string(name_of(a.kind)) + " " + std::string(operation) + " " +
                              name_of(b.kind) + ", expected two numbers" +
                              (is_order       ? " or two texts"
                               : first == '+' ? ", texts or lists"
                                              : ""));
}

/// The first of the arguments, or of the one list, that no other is before; `order`: < or >.
Value extreme(const std::vector<Value>& arguments, const char* order) {
  const bool is_list = arguments.size() == 1 && arguments[0].kind == Value::Kind::list;
  const std::vector<Value>& items = is_list ? arguments[0].items : arguments;
  if (items.empty() || (items.size() == 1 && !is_list))
    throw std::invalid_argument(
        "min() or max() of nothing or one value, expected values or a list");
  return *std::ranges::min_element(
      items, [&](const Value& a, const Value& b) { return calculate(order, a, b).boolean; });
}

const std::vector<std::string> expression_functions = {"float", "int", "len", "max", "min", "str"};

Value call_function(const std::string& name, const std::vector<Value>& arguments) {
  if (name == "min" || name == "max") return extreme(arguments, name == "min" ? "<" : ">");
  if (arguments.size() != 1)
    throw std::invalid_argument(name + "() with " + std::to_string(arguments.size()) +
                                " arguments, expected 1");
  const Value& value = arguments[0];
  if (name == "str") return Value::make_text(python_str(value));
  if (name == "len") {
    if (!is_text_or_list(value))
      throw std::invalid_argument(std::string("len() of ") + name_of(value.kind) +
                                  ", expected a list or text");
    const auto letters =
        std::ranges::count_if(value.text, [](char c) { return (c & 0xC0) != 0x80; });
    return Value::make_integer(letters + std::ssize(value.items));
  }
  const Kind kind = name == "int" ? Kind::integer : Kind::real;
  const Node node = cast(to_node(value), kind);
  if (node.kind != kind)
    throw std::invalid_argument(plain_text(node) + ", expected an integer of 64 bits");
  return Value::of(node);
}

bool is_name_char(char c) {
  return is_digit(c) || is_letter(c) || c == '_' || (c & 0x80) != 0;
}

/// The size of the symbol that `text` begins with: a text in quotes, a number, a name, an operator.
std::size_t symbol_size(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == '\'' || text[0] == '"')
    return std::min(text.find(text[0], 1), text.size() - 1) + 1;
  const bool is_number =
      is_digit(text[0]) || (text[0] == '.' && is_digit(text.substr(0, 2).back()));
  if (is_number || is_name_char(text[0])) {
    std::size_t size = 1;
    for (; size < text.size(); ++size) {
      const char c = text[size];
      const bool is_sign = (c == '+' || c == '-') && (text[size - 1] | 0x20) == 'e';
      if (!is_name_char(c) && !(is_number && (c == '.' || is_sign))) break;
    }
    return size;
  }
  for (const char* two : {"**", "//", "==", "!=", "<=", ">=", "<<", ">>", ":="}) {
    if (text.starts_with(two)) return 2;
  }
  return 1;
}

/// Parses and computes at once. What Python would not compute, such as x in `False and x`, is only
/// parsed: its value is null.
class Expression {
 public:
  explicit Expression(std::string_view text) : text_(text) { go_to(0); }

  Value value() {
    Value result = choice();
    if (!symbol_.empty()) fail_expected("an operator or the end");
    return result;
  }

 private:
  using Reader = Value (Expression::*)();

  void go_to(std::size_t at) {
    at_ = std::min(text_.find_first_not_of(" \t\f\r\n", at), text_.size());
    symbol_ = text_.substr(at_, symbol_size(text_.substr(at_)));
  }
  void advance() { go_to(at_ + symbol_.size()); }
  bool take(std::string_view symbol) {
    if (symbol_ != symbol) return false;
    advance();
    return true;
  }
  bool at_one_of(std::initializer_list<std::string_view> symbols) const {
    return contains(symbols, symbol_);
  }

  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw ConfigError("the expression " + quote(text_) + " at character " + std::to_string(at + 1) +
                      ": " + what);
  }
  [[noreturn]] void refuse(std::size_t at, const std::string& what) const {
    fail(at,
         "eval has no " + what +
             "; it has decimal numbers, texts in quotes, [lists], True, False, None, + - * / // %, "
             "== != < <= > >=, and, or, not, a if c else b, float, int, len, max, min, str");
  }
  /// Fails at the symbol at hand; what Python has there is refused by its name.
  [[noreturn]] void fail_expected(const std::string& expected) const {
    if (symbol_.empty()) fail(at_, "the expression ends, expected " + expected);
    if (symbol_.find_first_of(".{}&|^~=:;@#$?`\\") == 0 ||
        at_one_of({"<<", ">>", "**", "in", "is", "lambda"}))
      refuse(at_, quote(symbol_));
    if (expected != a_value) {
      if (symbol_ == ",") refuse(at_, "tuples");
      if (symbol_ == "[") refuse(at_, "indexing");
      if (symbol_ == "for") refuse(at_, "comprehensions");
      if (symbol_ == "not") refuse(at_, "'not in'");
    }
    fail(at_, quote(symbol_) + ", expected " + expected);
  }
  void expect(const char* symbol) {
    if (!take(symbol)) fail_expected(quote(symbol));
  }

  /// Reads a part that is computed only if it is needed.
  Value part(bool is_needed, Reader read) {
    skipped_ += is_needed ? 0 : 1;
    Value value = (this->*read)();
    skipped_ -= is_needed ? 0 : 1;
    return value;
  }
  Value compute(std::size_t at, auto operation) {
    if (skipped_ > 0) return {};
    try {
      return operation();
    } catch (const std::invalid_argument& error) {
      fail(at, error.what());
    }
  }

  Value choice() {
    if (++depth_ > max_expression_depth) fail(at_, "nested too deep, expected at most 64 levels");
    const std::size_t begin = at_;
    Value value = part(false, &Expression::any);
    const bool has_condition = take("if"), holds = !has_condition || is_true(any());
    if (has_condition) {
      expect("else");
      value = part(!holds, &Expression::choice);
    }
    if (holds && skipped_ == 0) {
      const std::size_t end = at_;
      go_to(begin);
      value = any();
      go_to(end);
    }
    --depth_;
    return value;
  }

  Value any() { return logic("or", true, &Expression::all); }
  Value all() { return logic("and", false, &Expression::inverse); }
  /// Reads parts; after one whose truth is `decisive` the others are not needed.
  Value logic(const char* word, bool decisive, Reader read) {
    Value value = (this->*read)();
    while (take(word)) {
      const bool is_decided = is_true(value) == decisive;
      Value next = part(!is_decided, read);
      if (!is_decided) value = std::move(next);
    }
    return value;
  }

  Value inverse() {
    if (!take("not")) return comparison();
    return Value::make_boolean(!is_true(inverse()));
  }

  /// Reads a < b < c: each pair must hold, and nothing after a false pair is computed.
  Value comparison() {
    Value left = sum();
    bool holds = true, is_first = true;
    for (; at_one_of({"==", "!=", "<", "<=", ">", ">="}); is_first = false) {
      const std::string_view operation = symbol_;
      const std::size_t at = at_;
      advance();
      Value right = part(holds, &Expression::sum);
      holds = holds && compute(at, [&] { return calculate(operation, left, right); }).boolean;
      left = std::move(right);
    }
    return is_first ? left : Value::make_boolean(holds);
  }

  Value sum() { return chain({"+", "-"}, &Expression::product); }
  Value product() { return chain({"*", "/", "//", "%"}, &Expression::sign); }
  Value chain(std::initializer_list<std::string_view> operators, Reader read) {
    Value left = (this->*read)();
    while (at_one_of(operators)) {
      const std::string_view operation = symbol_;
      const std::size_t at = at_;
      advance();
      const Value right = (this->*read)();
      left = compute(at, [&] { return calculate(operation, left, right); });
    }
    return left;
  }

  Value sign() {
    if (!at_one_of({"+", "-"})) return atom();
    const std::size_t at = at_;
    Value factor = Value::make_integer(1);
    for (; at_one_of({"+", "-"}); advance()) factor.integer *= symbol_ == "-" ? -1 : 1;
    const Value value = atom();
    if (!value.is_number() && skipped_ == 0)
      fail(at, std::string("a sign before ") + name_of(value.kind) + ", expected a number");
    return compute(at, [&] { return calculate("*", factor, value); });
  }

  Value atom() {
    const char first = symbol_.empty() ? ' ' : symbol_[0];
    if (take("(")) {
      if (symbol_ == ")") refuse(at_, "tuples");
      Value value = choice();
      expect(")");
      return value;
    }
    if (take("[")) return Value::make_list(items("]"));
    if (first == '\'' || first == '"') return text();
    if (is_digit(first) || (first == '.' && symbol_.size() > 1)) return number();
    if (is_name_char(first)) return word();
    fail_expected(a_value);
  }

  std::vector<Value> items(const char* close) {
    std::vector<Value> values;
    while (symbol_ != close) {
      values.push_back(choice());
      if (!take(",")) break;
    }
    expect(close);
    return values;
  }

  Value text() {
    const std::string_view text = symbol_;
    if (text.find('\\') != std::string_view::npos) refuse(at_, "'\\' in texts");
    if (text.size() < 2 || text.back() != text[0] || text.find('\n') != std::string_view::npos)
      fail(at_, "a quote opens, expected its end");
    advance();
    return Value::make_text(std::string(text.substr(1, text.size() - 2)));
  }

  Value number() {
    Node node;
    type_override_scalar(symbol_, node);
    if (node.kind == Kind::real && symbol_.find_first_of(".eE") == std::string_view::npos)
      fail(at_, "an integer over 64 bits, expected at most 9223372036854775807");
    if (node.kind != Kind::integer && node.kind != Kind::real)
      refuse(at_, "number " + quote(symbol_));
    advance();
    return Value::of(node);
  }

  Value word() {
    const std::size_t at = at_;
    const std::string name(symbol_);
    if (at_one_of({"and", "or", "not", "if", "else", "in", "is", "lambda"})) fail_expected(a_value);
    advance();
    if (name == "True" || name == "true") return Value::make_boolean(true);
    if (name == "False" || name == "false") return Value::make_boolean(false);
    if (name == "None" || name == "null") return {};
    if (take("(")) return call(name, at);
    if (text_.find(" for ", at) != std::string::npos) refuse(at, "comprehensions");
    if (skipped_ > 0) return {};
    fail(at, "unknown name " + quote(name) + ", expected a value (text stands in quotes)");
  }

  Value call(const std::string& name, std::size_t at) {
    const std::string near = nearest(name, expression_functions);
    if (near != name)
      refuse(at, "function " + quote(name) + (near.empty() ? "" : " (rather " + near + ")"));
    return compute(at, [&, values = items(")")] { return call_function(name, values); });
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string_view symbol_;  // what is at at_; empty at the end
  int depth_ = 0;
  int skipped_ = 0;  // parts around this one that are only parsed
};

}  // namespace

Value evaluate_expression(const std::string& text) {
  if (text.size() > max_length)
    throw ConfigError("the expression " + quote(text.substr(0, 50)) +
                      " is too long, expected at most 10,000 characters");
  return Expression(text).value();
}

}  // namespace cytra::config
