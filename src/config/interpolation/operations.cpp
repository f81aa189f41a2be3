#include "config/interpolation/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "config/interpolation/numbers.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

using ValueKind = Value::Kind;

bool is_sequence(const Value& value) {
  return value.kind == ValueKind::list || value.kind == ValueKind::tuple;
}

bool equal_values(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  if (a.is_text()) return a.text == b.text;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal_values);
}

/// Compares two values; `op` is one of < <= > >=.
bool ordered(const std::string& op, const Value& a, const Value& b) {
  const auto holds = [&](int order) {
    return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
  };
  if (a.is_number() && b.is_number()) {
    const std::optional<int> order = compare_numbers(a, b);
    return order && holds(*order);
  }
  if (a.is_text() && b.is_text()) return holds(a.text.compare(b.text));
  if (!is_sequence(a) || a.kind != b.kind) {
    throw OperationError(std::string(name_of(a.kind)) + " " + op + " " + name_of(b.kind) +
                         ", expected two numbers or two texts");
  }
  for (std::size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i) {
    if (!equal_values(a.items[i], b.items[i])) return ordered(op, a.items[i], b.items[i]);
  }
  return holds(static_cast<int>(a.items.size() > b.items.size()) -
               static_cast<int>(a.items.size() < b.items.size()));
}

bool contains(const Value& container, const Value& value) {
  if (container.is_text()) {
    if (!value.is_text())
      throw OperationError(std::string(name_of(value.kind)) + " in text, expected text in text");
    return container.text.find(value.text) != std::string::npos;
  }
  if (!is_sequence(container))
    throw OperationError(std::string("in ") + name_of(container.kind) +
                         ", expected a list or text");
  return std::any_of(container.items.begin(), container.items.end(), [&](const Value& item) {
    return equal_values(item, value);
  });
}

bool is_same(const Value& a, const Value& b) {
  const auto single = [](const Value& v) {
    return v.kind == ValueKind::null || v.kind == ValueKind::boolean;
  };
  if (!single(a) && !single(b))
    throw OperationError("'is' between two values, expected '==' (or None, True, False)");
  return a.kind == b.kind && a.boolean == b.boolean;
}

/// The starts of the characters in UTF-8, and the end.
std::vector<std::size_t> characters(const std::string& text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80) starts.push_back(i);
  }
  starts.push_back(text.size());
  return starts;
}

}  // namespace

bool Operations::is_true(const Value& value) {
  switch (value.kind) {
    case ValueKind::null:
      return false;
    case ValueKind::text:
      return !value.text.empty();
    case ValueKind::boolean:
    case ValueKind::integer:
    case ValueKind::real:
      return number_of(value) != 0;
    default:
      return !value.items.empty();
  }
}

void Operations::spend(std::size_t size) {
  if (size > left_)
    throw OperationError(
        "the result grows too large, expected at most 100,000 characters and items");
  left_ -= size;
}

Value Operations::repeat(const Value& sequence, int64_t times) {
  Value result;
  result.kind = sequence.kind;
  if (sequence.text.empty() && sequence.items.empty()) return result;
  Size size;
  add_size(sequence, size);
  const std::size_t each = size.nodes + size.bytes;
  if (times > 0 && static_cast<uint64_t>(times) > left_ / each) spend(left_ + 1);
  if (times > 0) spend(each * static_cast<std::size_t>(times));
  for (int64_t i = 0; i < times; ++i) {
    result.text += sequence.text;
    result.items.insert(result.items.end(), sequence.items.begin(), sequence.items.end());
  }
  return result;
}

Value Operations::add(const Value& a, const Value& b) {
  if ((a.is_text() && b.is_text()) || (is_sequence(a) && a.kind == b.kind)) {
    Size size;
    add_size(a, size);
    add_size(b, size);
    spend(size.nodes + size.bytes);
    Value result = a;
    result.text += b.text;
    result.items.insert(result.items.end(), b.items.begin(), b.items.end());
    return result;
  }
  throw OperationError(std::string(name_of(a.kind)) + " + " + name_of(b.kind) +
                       ", expected two numbers, texts, lists or tuples");
}

Value Operations::multiply(const Value& a, const Value& b) {
  if (is_integer(b) && (a.is_text() || is_sequence(a))) return repeat(a, integer_of(b));
  if (is_integer(a) && (b.is_text() || is_sequence(b))) return repeat(b, integer_of(a));
  throw OperationError(std::string(name_of(a.kind)) + " * " + name_of(b.kind) +
                       ", expected two numbers, or a text or list and a whole number");
}

Value Operations::binary(const std::string& op, const Value& a, const Value& b) {
  if (op == "==" || op == "!=") return Value::make_boolean(equal_values(a, b) == (op == "=="));
  if (op == "in" || op == "not in") return Value::make_boolean(contains(b, a) == (op == "in"));
  if (op == "is" || op == "is not") return Value::make_boolean(is_same(a, b) == (op == "is"));
  if (op[0] == '<' || op[0] == '>') return Value::make_boolean(ordered(op, a, b));
  if (!a.is_number() || !b.is_number()) {
    if (op == "+") return add(a, b);
    if (op == "*") return multiply(a, b);
    throw OperationError(std::string(name_of(a.kind)) + " " + op + " " + name_of(b.kind) +
                         ", expected two numbers");
  }
  return calculate(op, a, b);
}

Value Operations::unary(const std::string& op, const Value& a) {
  if (!a.is_number())
    throw OperationError(op + " before " + name_of(a.kind) + ", expected a number");
  if (op == "+") return a.kind == ValueKind::real ? a : Value::make_integer(integer_of(a));
  if (a.kind == ValueKind::real) return Value::make_real(-a.real);
  return calculate("-", Value::make_integer(0), a);
}

Value Operations::item(const Value& container, const Value& index) {
  if (!container.is_text() && !is_sequence(container))
    throw OperationError(std::string(name_of(container.kind)) +
                         " has no items, expected a list, tuple or text");
  if (!is_integer(index))
    throw OperationError(std::string(name_of(index.kind)) + " as index, expected a whole number");
  const std::vector<std::size_t> starts =
      container.is_text() ? characters(container.text) : std::vector<std::size_t>();
  const auto size =
      static_cast<int64_t>(container.is_text() ? starts.size() - 1 : container.items.size());
  const int64_t place = integer_of(index) < 0 ? integer_of(index) + size : integer_of(index);
  if (place < 0 || place >= size)
    throw OperationError("index " + std::to_string(integer_of(index)) + " of " +
                         std::to_string(size) + " items, expected one of them");
  const auto i = static_cast<std::size_t>(place);
  if (!container.is_text()) return container.items[i];
  return Value::make_text(container.text.substr(starts[i], starts[i + 1] - starts[i]));
}

bool Operations::is_function(const std::string& name) {
  constexpr std::array<const char*, 8> names = {
      "abs", "float", "int", "len", "max", "min", "round", "str"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value Operations::extreme(const std::string& name, const std::vector<Value>& arguments) {
  std::vector<Value> items = arguments;
  if (arguments.size() == 1) {
    if (arguments[0].is_text()) {
      items.clear();
      const std::vector<std::size_t> starts = characters(arguments[0].text);
      for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        items.push_back(
            Value::make_text(arguments[0].text.substr(starts[i], starts[i + 1] - starts[i])));
    } else if (is_sequence(arguments[0])) {
      items = arguments[0].items;
    } else {
      throw OperationError(name + "() of " + name_of(arguments[0].kind) +
                           ", expected values or a list");
    }
  }
  if (items.empty()) throw OperationError(name + "() of nothing, expected one value or more");
  std::size_t best = 0;
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (ordered(name == "min" ? "<" : ">", items[i], items[best])) best = i;
  }
  return items[best];
}

Value Operations::call(const std::string& name, const std::vector<Value>& arguments) {
  const bool is_cast = name == "int" || name == "float" || name == "str";
  const std::size_t most = name == "round" ? 2 : name == "min" || name == "max" ? SIZE_MAX : 1;
  if (arguments.size() > most || (arguments.empty() && !is_cast)) {
    throw OperationError(name + "() with " + std::to_string(arguments.size()) +
                         " arguments, expected " +
                         (name == "round" ? "1 or 2"
                          : most == 1     ? "1"
                                          : "at least 1"));
  }
  if (name == "min" || name == "max") return extreme(name, arguments);
  if (name == "round") return rounded(arguments[0], arguments.size() > 1 ? arguments[1] : Value());
  if (name == "int") return arguments.empty() ? Value::make_integer(0) : as_integer(arguments[0]);
  if (name == "float") return arguments.empty() ? Value::make_real(0) : as_real(arguments[0]);
  if (name == "str") {
    std::string text = arguments.empty() ? "" : python_str(arguments[0]);
    spend(text.size());
    return Value::make_text(std::move(text));
  }
  const Value& value = arguments[0];
  if (name == "len") {
    if (value.is_text())
      return Value::make_integer(static_cast<int64_t>(characters(value.text).size()) - 1);
    if (!is_sequence(value))
      throw OperationError(std::string("len() of ") + name_of(value.kind) +
                           ", expected a list or text");
    return Value::make_integer(static_cast<int64_t>(value.items.size()));
  }
  if (!value.is_number())
    throw OperationError(std::string("abs() of ") + name_of(value.kind) + ", expected a number");
  if (value.kind == ValueKind::real) return Value::make_real(std::abs(value.real));
  return integer_of(value) < 0 ? unary("-", value) : Value::make_integer(integer_of(value));
}

}  // namespace cytra::config
