// Source: hydra/_internal/grammar/grammar_functions.py of Hydra 1.3.8, rule by rule.
#include "config/overrides/functions.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/strings.h"
#include "config/text/cast.h"

namespace cytra::config {
namespace {

using Sweep = Override::Sweep;

bool is_choice(const OverrideValue& value) {
  return value.sweep && (value.sweep->kind == Sweep::simple || value.sweep->kind == Sweep::choice);
}
bool is_range(const OverrideValue& value) {
  return value.sweep && value.sweep->kind == Sweep::range;
}

/// The named argument, or nullptr; the last one wins, as in a Python dict.
const OverrideValue* find(const FunctionCall& call, std::string_view name) {
  const OverrideValue* found = nullptr;
  for (const auto& [key, value] : call.named) {
    if (key == name) found = &value;
  }
  return found;
}
/// The named argument, which may be null: then it counts as missing.
const OverrideValue* find_optional(const FunctionCall& call, std::string_view name) {
  const OverrideValue* found = find(call, name);
  return found != nullptr && !found->sweep && found->node.is_null() ? nullptr : found;
}

OverrideValue value_of(Node node) {
  OverrideValue value;
  value.node = std::move(node);
  return value;
}
OverrideValue simple_choice(std::vector<OverrideValue> values) {
  OverrideValue result;
  result.sweep.emplace();
  result.sweep->kind = Sweep::simple;
  for (OverrideValue& value : values) {
    if (value.sweep)
      throw std::invalid_argument("values to try inside another value, expected one value");
    result.sweep->choices.push_back(std::move(value));
  }
  return result;
}

// Casts.

OverrideValue call_cast(FunctionCall& call) {
  const Kind kind = call.name == "int"     ? Kind::integer
                    : call.name == "float" ? Kind::real
                    : call.name == "bool"  ? Kind::boolean
                                           : Kind::string;
  OverrideValue value;
  const OverrideValue* named = find_optional(call, "value");
  if (named != nullptr && !call.arguments.empty())
    throw std::invalid_argument("a value with and one without a name, expected one");
  if (named != nullptr) {
    value = *named;
  } else if (call.arguments.size() == 1) {
    value = std::move(call.arguments[0]);
  } else if (!call.arguments.empty()) {
    value = simple_choice(std::move(call.arguments));
  } else {
    throw std::invalid_argument(call.name + "() has no value, expected one");
  }
  if (!value.sweep) return value_of(cast(value.node, kind));
  SweepValue& sweep = *value.sweep;
  const bool to_number = kind == Kind::integer || kind == Kind::real;
  if (sweep.kind == Sweep::glob || (!is_choice(value) && !to_number)) {
    throw std::invalid_argument(std::string("a ") +
                                (sweep.kind == Sweep::glob ? "glob"
                                 : is_range(value)         ? "range"
                                                           : "interval") +
                                "() can't become " + name_of(kind) + ", expected " +
                                (sweep.kind == Sweep::glob ? "values" : "int() or float()"));
  }
  for (TypedValue& choice : sweep.choices) choice = {cast(choice.node, kind), ""};
  if (!is_choice(value)) {
    for (Node* end : {&sweep.start, &sweep.stop}) *end = cast(*end, kind);
    if (is_range(value)) sweep.step = cast(sweep.step, kind);
  }
  sweep.shuffled = false;
  return value;
}

// Sweeps.

OverrideValue call_choice(FunctionCall& call) {
  std::vector<OverrideValue>& values = call.arguments;
  if (values.empty()) throw std::invalid_argument("choice() has no value, expected at least one");
  if (values.size() == 1 && is_choice(values[0])) {
    if (values[0].sweep->kind == Sweep::choice)
      throw std::invalid_argument("a choice() in a choice(), expected values");
    values[0].sweep->kind = Sweep::choice;
    return std::move(values[0]);
  }
  for (const OverrideValue& value : values) {
    if (!value.sweep && value.node.is_null())
      throw std::invalid_argument("choice() takes no null, expected other values");
  }
  OverrideValue result = simple_choice(std::move(values));
  result.sweep->kind = Sweep::choice;
  return result;
}

Node number_argument(const FunctionCall& call, const char* name) {
  const OverrideValue* value = find(call, name);
  if (value == nullptr)
    throw std::invalid_argument(call.name + "() has no '" + name + "', expected a number");
  if (value->sweep || !is_number(value->node))
    throw std::invalid_argument("'" + std::string(name) + "' of " + call.name +
                                "() is not a number, expected one");
  // Python takes true for 1.
  return value->node.kind == Kind::boolean ? cast(value->node, Kind::integer) : value->node;
}

OverrideValue call_range(FunctionCall& call) {
  OverrideValue result;
  SweepValue& sweep = result.sweep.emplace();
  sweep.kind = Sweep::range;
  sweep.start = number_argument(call, "start");
  sweep.stop = sweep.start;
  if (find_optional(call, "stop") != nullptr) {
    sweep.stop = number_argument(call, "stop");
  } else {
    sweep.start = Node::make_integer(0);
  }
  sweep.step =
      find(call, "step") != nullptr ? number_argument(call, "step") : Node::make_integer(1);
  return result;
}

OverrideValue call_interval(FunctionCall& call) {
  OverrideValue result;
  SweepValue& sweep = result.sweep.emplace();
  sweep.kind = Sweep::interval;
  sweep.start = cast(number_argument(call, "start"), Kind::real);
  sweep.stop = cast(number_argument(call, "end"), Kind::real);
  return result;
}

std::vector<std::string> patterns(const OverrideValue& value, const char* name) {
  std::vector<std::string> result;
  const bool is_list = !value.sweep && value.node.kind == Kind::list;
  const std::vector<Node> items = is_list ? value.node.list : std::vector<Node>{value.node};
  for (const Node& item : items) {
    if (value.sweep || item.kind != Kind::string)
      throw std::invalid_argument(std::string("'") + name +
                                  "' of glob() is not text, expected a pattern or [patterns]");
    result.push_back(item.string);
  }
  return result;
}

OverrideValue call_glob(FunctionCall& call) {
  OverrideValue result;
  SweepValue& sweep = result.sweep.emplace();
  sweep.kind = Sweep::glob;
  const OverrideValue* include = find(call, "include");
  if (include == nullptr)
    throw std::invalid_argument("glob() has no pattern, expected one, such as glob(*)");
  sweep.include = patterns(*include, "include");
  const OverrideValue* exclude = find_optional(call, "exclude");
  if (exclude != nullptr) sweep.exclude = patterns(*exclude, "exclude");
  return result;
}

/// Checks a tag and drops it: tags are for other sweepers.
OverrideValue call_tag(FunctionCall& call) {
  std::vector<OverrideValue>& values = call.arguments;
  if (values.empty())
    throw std::invalid_argument("tag() has no values, expected tag(name, choice(...))");
  if (const OverrideValue* sweep = find_optional(call, "sweep")) values.push_back(*sweep);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_sweep = values[i].sweep && values[i].sweep->kind != Sweep::glob;
    const bool is_text = !values[i].sweep && values[i].node.kind == Kind::string;
    if (i + 1 == values.size() ? !is_sweep : !is_text)
      throw std::invalid_argument(
          "tag() takes names, then values to try, expected tag(name, choice(...))");
  }
  return std::move(values.back());
}

// Order.

/// Compares as Python does: <0, 0, >0; other pairs have no order.
int compare(const Node& a, const Node& b) {
  if (is_number(a) && is_number(b)) {
    if (std::isnan(number_of(a)) || std::isnan(number_of(b)))
      throw std::invalid_argument("nan has no order, expected other values");
    if (a.kind == Kind::integer && b.kind == Kind::integer)
      return a.integer < b.integer ? -1 : static_cast<int>(a.integer > b.integer);
    return number_of(a) < number_of(b) ? -1 : static_cast<int>(number_of(a) > number_of(b));
  }
  if (a.kind == Kind::string && b.kind == Kind::string) return a.string.compare(b.string);
  if (a.kind != Kind::list || b.kind != Kind::list) {
    throw std::invalid_argument(shown(a) + " and " + shown(b) +
                                " have no order, expected only numbers or only text");
  }
  for (std::size_t i = 0; i < std::min(a.list.size(), b.list.size()); ++i) {
    if (equal(a.list[i], b.list[i])) continue;
    if (const int order = compare(a.list[i], b.list[i]); order != 0) return order;
  }
  return a.list.size() < b.list.size() ? -1 : static_cast<int>(a.list.size() > b.list.size());
}

OverrideValue sort_sweep(OverrideValue value, bool reverse) {
  SweepValue& sweep = *value.sweep;
  if (is_choice(value)) {
    std::ranges::stable_sort(sweep.choices, [&](const auto& a, const auto& b) {
      return reverse ? compare(b.node, a.node) < 0 : compare(a.node, b.node) < 0;
    });
    return value;
  }
  // Hydra's formulas are used, which are made for a range that reaches its stop: range(1, 10, 4)
  // backwards begins at 6.
  const int order = compare(sweep.start, sweep.stop);
  if (reverse ? order >= 0 : order <= 0) return value;
  const bool real = sweep.start.kind == Kind::real || sweep.stop.kind == Kind::real ||
                    sweep.step.kind == Kind::real;
  const double sign = reverse ? -1 : 1;
  const double start = number_of(sweep.stop) + sign * std::abs(number_of(sweep.step));
  const double stop = number_of(sweep.start) + sign * std::abs(number_of(sweep.step));
  const auto set = [&](Node& node, double to) {
    node.kind = Kind::real;
    node.real = to;
    if (!real) node = cast(node, Kind::integer);
  };
  set(sweep.start, start);
  set(sweep.stop, stop);
  set(sweep.step, -number_of(sweep.step));
  return value;
}

/// Checks the arguments of sort() and shuffle().
void check_order_arguments(const FunctionCall& call) {
  const std::string expected = " takes values, lists, choice() and range(), expected one of these";
  for (const OverrideValue& value : call.arguments) {
    if (value.sweep ? !is_choice(value) && !is_range(value) : value.node.is_null())
      throw std::invalid_argument(call.name + "()" + expected);
  }
  const OverrideValue* sweep = find_optional(call, "sweep");
  const OverrideValue* list = find_optional(call, "list");
  if ((sweep != nullptr && !is_choice(*sweep) && !is_range(*sweep)) ||
      (list != nullptr && (list->sweep || list->node.kind != Kind::list)))
    throw std::invalid_argument("'" + std::string(list != nullptr ? "list" : "sweep") + "' of " +
                                call.name + "()" + expected);
}

OverrideValue sort_list(Node list, bool reverse) {
  std::ranges::stable_sort(list.list, [&](const Node& a, const Node& b) {
    return reverse ? compare(b, a) < 0 : compare(a, b) < 0;
  });
  return value_of(std::move(list));
}

OverrideValue call_sort(FunctionCall& call) {
  check_order_arguments(call);
  const OverrideValue* reversed = find(call, "reverse");
  if (reversed != nullptr && (reversed->sweep || reversed->node.kind != Kind::boolean))
    throw std::invalid_argument(
        "'reverse' of sort() is neither true nor false, expected one of them");
  const bool reverse = reversed != nullptr && reversed->node.boolean;
  if (const OverrideValue* list = find_optional(call, "list"))
    return sort_list(list->node, reverse);
  if (const OverrideValue* sweep = find_optional(call, "sweep")) return sort_sweep(*sweep, reverse);
  if (call.arguments.empty())
    throw std::invalid_argument("sort() has nothing to sort, expected values");
  if (call.arguments.size() == 1) {
    OverrideValue& value = call.arguments[0];
    if (value.sweep) return sort_sweep(std::move(value), reverse);
    if (value.node.kind == Kind::list) return sort_list(std::move(value.node), reverse);
    return std::move(value);
  }
  for (const OverrideValue& value : call.arguments) {
    if (!value.sweep && (value.node.kind == Kind::list || value.node.is_map()))
      throw std::invalid_argument("several lists to sort, expected one list, numbers or text");
  }
  return sort_sweep(simple_choice(std::move(call.arguments)), reverse);
}

OverrideValue call_shuffle(FunctionCall& call) {
  check_order_arguments(call);
  OverrideValue value;
  if (const OverrideValue* list = find_optional(call, "list")) {
    value = *list;
  } else if (const OverrideValue* sweep = find_optional(call, "sweep")) {
    value = *sweep;
  } else if (call.arguments.size() == 1) {
    value = std::move(call.arguments[0]);
  } else {
    value = simple_choice(std::move(call.arguments));
  }
  if (value.sweep) {
    value.sweep->shuffled = true;
    value.sweep->seed = call.seed;
    return value;
  }
  if (value.node.kind != Kind::list) return value_of(Node::make_list({std::move(value.node)}));
  shuffle(value.node.list, call.seed);
  return value_of(std::move(value.node));
}

struct Function {
  OverrideValue (*call)(FunctionCall& call);
  bool many;                       // any number of values without a name
  std::vector<std::string> names;  // of arguments
};

const std::vector<std::pair<std::string, Function>>& functions() {
  static const std::vector<std::pair<std::string, Function>> table = {
      {"bool", {call_cast, true, {"value"}}},
      {"choice", {call_choice, true, {}}},
      {"float", {call_cast, true, {"value"}}},
      {"glob", {call_glob, false, {"include", "exclude"}}},
      {"int", {call_cast, true, {"value"}}},
      {"interval", {call_interval, false, {"start", "end"}}},
      {"range", {call_range, false, {"start", "stop", "step"}}},
      {"shuffle", {call_shuffle, true, {"sweep", "list"}}},
      {"sort", {call_sort, true, {"sweep", "list", "reverse"}}},
      {"str", {call_cast, true, {"value"}}},
      {"tag", {call_tag, true, {"sweep"}}},
  };
  return table;
}

const Function* find_function(std::string_view name) {
  for (const auto& [key, function] : functions()) {
    if (key == name) return &function;
  }
  return nullptr;
}

}  // namespace

bool is_function(std::string_view name) {
  return find_function(name) != nullptr;
}

std::vector<std::string> function_names() {
  return keys_of(functions());
}

OverrideValue call_function(FunctionCall call) {
  const Function& function = *find_function(call.name);
  const std::size_t most = function.many ? call.arguments.size() : function.names.size();
  if (call.arguments.size() > most) {
    throw std::invalid_argument(call.name + "() has " + std::to_string(call.arguments.size()) +
                                " values, expected at most " + std::to_string(most));
  }
  for (const auto& [name, value] : call.named) {
    const auto place = std::ranges::find(function.names, name);
    if (place == function.names.end()) {
      throw std::invalid_argument(call.name + "() has no argument '" + name +
                                  "', expected a known one or quotes, which make it text." +
                                  suggestion(name, function.names));
    }
    if (!function.many &&
        static_cast<std::size_t>(place - function.names.begin()) < call.arguments.size())
      throw std::invalid_argument("'" + name + "' of " + call.name +
                                  "() is given twice, expected it once");
  }
  if (!function.many) {
    for (std::size_t i = 0; i < call.arguments.size(); ++i)
      call.named.emplace_back(function.names[i], std::move(call.arguments[i]));
  }
  return function.call(call);
}

}  // namespace cytra::config
