// Part of nn/exported/operator_call.h: what Python computes with sides.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/exported/operator_call.h"

namespace cytra::nn {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))
    throw DataError("a side is divided by zero");
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// An operation that tells of an overflow.
template <class Operation>
auto in_range(Operation operation) {
  return [operation](int64_t a, int64_t b) {
    int64_t result = 0;
    if (operation(a, b, &result)) throw DataError("a side is too large");
    return result;
  };
}

using Compute = std::function<c10::IValue(const std::vector<c10::IValue>&)>;
struct SymbolFunction {
  std::size_t inputs;
  Compute compute;
};

bool are_whole(const std::vector<c10::IValue>& in) {
  return std::all_of(in.begin(), in.end(), [](const c10::IValue& value) {
    return value.isInt() || value.isBool();
  });
}

int64_t whole_in(const c10::IValue& value) {
  return value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt();
}

/// A function of two numbers, for whole and for real ones.
template <class Whole, class Real>
SymbolFunction binary(Whole whole, Real real) {
  return {2, [whole, real](const std::vector<c10::IValue>& in) -> c10::IValue {
            if (are_whole(in)) return whole(whole_in(in.at(0)), whole_in(in.at(1)));
            return real(in.at(0).toScalar().toDouble(), in.at(1).toScalar().toDouble());
          }};
}

const std::map<std::string, SymbolFunction>& symbol_functions() {
  using Inputs = std::vector<c10::IValue>;
  const auto truth = [](const c10::IValue& value) {
    return value.isBool() ? value.toBool() : value.toScalar().toDouble() != 0;
  };
  const auto to_whole = [](double value) {
    if (!(std::abs(value) < 9e18)) throw DataError("a side is too large");
    return static_cast<int64_t>(value);
  };
  static const std::map<std::string, SymbolFunction> known{
      {"_operator.add",
       binary(in_range([](int64_t a, int64_t b, int64_t* to) {
                return __builtin_add_overflow(a, b, to);
              }),
              std::plus<double>())},
      {"_operator.sub",
       binary(in_range([](int64_t a, int64_t b, int64_t* to) {
                return __builtin_sub_overflow(a, b, to);
              }),
              std::minus<double>())},
      {"_operator.mul",
       binary(in_range([](int64_t a, int64_t b, int64_t* to) {
                return __builtin_mul_overflow(a, b, to);
              }),
              std::multiplies<double>())},
      {"_operator.floordiv",
       binary(floor_quotient, [](double a, double b) { return std::floor(a / b); })},
      {"_operator.truediv",
       {2,
        [](const Inputs& in) -> c10::IValue {
          return in.at(0).toScalar().toDouble() / in.at(1).toScalar().toDouble();
        }}},
      {"_operator.mod",
       binary([](int64_t a, int64_t b) { return a - floor_quotient(a, b) * b; },
              [](double a, double b) { return a - std::floor(a / b) * b; })},
      {"_operator.pow",
       {2,
        [to_whole](const Inputs& in) -> c10::IValue {
          const double power =
              std::pow(in.at(0).toScalar().toDouble(), in.at(1).toScalar().toDouble());
          if (are_whole(in) && whole_in(in.at(1)) >= 0) return to_whole(power);
          return power;
        }}},
      {"_operator.eq", binary(std::equal_to<int64_t>(), std::equal_to<double>())},
      {"_operator.ne", binary(std::not_equal_to<int64_t>(), std::not_equal_to<double>())},
      {"_operator.lt", binary(std::less<int64_t>(), std::less<double>())},
      {"_operator.le", binary(std::less_equal<int64_t>(), std::less_equal<double>())},
      {"_operator.gt", binary(std::greater<int64_t>(), std::greater<double>())},
      {"_operator.ge", binary(std::greater_equal<int64_t>(), std::greater_equal<double>())},
      {"_operator.and_",
       {2,
        [truth](const Inputs& in) -> c10::IValue { return truth(in.at(0)) && truth(in.at(1)); }}},
      {"_operator.or_",
       {2,
        [truth](const Inputs& in) -> c10::IValue { return truth(in.at(0)) || truth(in.at(1)); }}},
      {"_operator.neg",
       {1,
        [](const Inputs& in) -> c10::IValue {
          if (are_whole(in)) return floor_quotient(whole_in(in.at(0)), -1);
          return -in.at(0).toScalar().toDouble();
        }}},
      {"_operator.pos", {1, [](const Inputs& in) -> c10::IValue { return in.at(0); }}},
      {"math.trunc",
       {1,
        [to_whole](const Inputs& in) -> c10::IValue {
          return to_whole(in.at(0).toScalar().toDouble());
        }}},
      {"torch.sym_int",
       {1,
        [to_whole](const Inputs& in) -> c10::IValue {
          return to_whole(in.at(0).toScalar().toDouble());
        }}},
      {"torch.sym_float",
       {1, [](const Inputs& in) -> c10::IValue { return in.at(0).toScalar().toDouble(); }}},
      {"torch.sym_not", {1, [truth](const Inputs& in) -> c10::IValue { return !truth(in.at(0)); }}},
      {"torch.sym_max",
       binary([](int64_t a, int64_t b) { return std::max(a, b); },
              [](double a, double b) { return std::max(a, b); })},
      {"torch.sym_min",
       binary([](int64_t a, int64_t b) { return std::min(a, b); },
              [](double a, double b) { return std::min(a, b); })},
      {"torch.sym_ite",
       {3,
        [truth](const Inputs& in) -> c10::IValue {
          return truth(in.at(0)) ? in.at(1) : in.at(2);
        }}},
      {"torch.sym_sqrt", {1, [](const Inputs& in) -> c10::IValue {
                            return std::sqrt(in.at(0).toScalar().toDouble());
                          }}}};
  return known;
}

}  // namespace

std::size_t symbol_inputs(const std::string& function) {
  const auto found = symbol_functions().find(function);
  return found == symbol_functions().end() ? 0 : found->second.inputs;
}

c10::IValue compute_symbol(const std::string& function, const std::vector<c10::IValue>& inputs) {
  const auto found = symbol_functions().find(function);
  if (found == symbol_functions().end())
    throw DataError(fmt::format("the function {} is not known", printable(function)));
  for (const c10::IValue& input : inputs)
    if (!input.isScalar()) throw DataError(fmt::format("{} of what is no number", function));
  if (inputs.size() != found->second.inputs)
    throw DataError(fmt::format(
        "{} of {} numbers, expected {}", function, inputs.size(), found->second.inputs));
  return found->second.compute(inputs);
}

}  // namespace cytra::nn
