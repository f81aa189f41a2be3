// Part of nn/exported/operator_call.h: what Python computes with sides.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
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
    __extension__ using Wide = __int128;
    const Wide result = operation(Wide{a}, Wide{b});
    if (result != static_cast<int64_t>(result)) throw DataError("a side is too large");
    return static_cast<int64_t>(result);
  };
}

bool are_whole(const Values& in) {
  return std::ranges::all_of(
      in, [](const c10::IValue& value) { return value.isInt() || value.isBool(); });
}

int64_t whole_in(const c10::IValue& value) {
  return value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt();
}

double real_in(const c10::IValue& value) {
  return value.toScalar().toDouble();
}

bool truth_in(const c10::IValue& value) {
  return value.isBool() ? value.toBool() : real_in(value) != 0;
}

int64_t to_whole(double value) {
  if (!(std::abs(value) < 9e18)) throw DataError("a side is too large");
  return static_cast<int64_t>(value);
}

c10::IValue power(const Values& in) {
  const double result = std::pow(real_in(in.at(0)), real_in(in.at(1)));
  if (are_whole(in) && whole_in(in.at(1)) >= 0) return to_whole(result);
  return result;
}

c10::IValue negative(const Values& in) {
  if (are_whole(in)) return floor_quotient(whole_in(in.at(0)), -1);
  return -real_in(in.at(0));
}

/// A function of two numbers, for whole and for real ones.
template <class Whole, class Real>
SymbolFunction binary(Whole whole, Real real) {
  return {2, [whole, real](const Values& in) -> c10::IValue {
            if (are_whole(in)) return whole(whole_in(in.at(0)), whole_in(in.at(1)));
            return real(real_in(in.at(0)), real_in(in.at(1)));
          }};
}
SymbolFunction binary(auto operation) {
  return binary(operation, operation);
}

const std::map<std::string, SymbolFunction>& symbol_functions() {
  using V = c10::IValue;
  const SymbolFunction to_int{1, [](const Values& in) -> V { return to_whole(real_in(in.at(0))); }};
  static const std::map<std::string, SymbolFunction> known{
      {"_operator.add", binary(in_range(std::plus<>()), std::plus<>())},
      {"_operator.sub", binary(in_range(std::minus<>()), std::minus<>())},
      {"_operator.mul", binary(in_range(std::multiplies<>()), std::multiplies<>())},
      {"_operator.floordiv",
       binary(floor_quotient, [](double a, double b) { return std::floor(a / b); })},
      {"_operator.truediv",
       {2, [](const Values& in) -> V { return real_in(in.at(0)) / real_in(in.at(1)); }}},
      {"_operator.mod",
       binary([](int64_t a, int64_t b) { return a - floor_quotient(a, b) * b; },
              [](double a, double b) { return a - std::floor(a / b) * b; })},
      {"_operator.pow", {2, power}},
      {"_operator.eq", binary(std::equal_to<>())},
      {"_operator.ne", binary(std::not_equal_to<>())},
      {"_operator.lt", binary(std::less<>())},
      {"_operator.le", binary(std::less_equal<>())},
      {"_operator.gt", binary(std::greater<>())},
      {"_operator.ge", binary(std::greater_equal<>())},
      {"_operator.and_",
       {2, [](const Values& in) -> V { return truth_in(in.at(0)) && truth_in(in.at(1)); }}},
      {"_operator.or_",
       {2, [](const Values& in) -> V { return truth_in(in.at(0)) || truth_in(in.at(1)); }}},
      {"_operator.neg", {1, negative}},
      {"_operator.pos", {1, [](const Values& in) { return in.at(0); }}},
      {"math.trunc", to_int},
      {"torch.sym_int", to_int},
      {"torch.sym_float", {1, [](const Values& in) -> V { return real_in(in.at(0)); }}},
      {"torch.sym_not", {1, [](const Values& in) -> V { return !truth_in(in.at(0)); }}},
      {"torch.sym_max", binary([](auto a, auto b) { return std::max(a, b); })},
      {"torch.sym_min", binary([](auto a, auto b) { return std::min(a, b); })},
      {"torch.sym_ite",
       {3, [](const Values& in) { return truth_in(in.at(0)) ? in.at(1) : in.at(2); }}},
      {"torch.sym_sqrt", {1, [](const Values& in) -> V { return std::sqrt(real_in(in.at(0))); }}}};
  return known;
}

}  // namespace

const SymbolFunction* find_symbol_function(const std::string& name) {
  const auto found = symbol_functions().find(name);
  return found == symbol_functions().end() ? nullptr : &found->second;
}

}  // namespace cytra::nn
