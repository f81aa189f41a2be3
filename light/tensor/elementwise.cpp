// Operations on each element by itself, and on pairs.
#include <cmath>
#include <functional>

#include "walk.h"

namespace at {
namespace {

/// Rank of a kind of number: truth values, whole numbers, real ones.
int kind_of(ScalarType type) {
  return isFloatingType(type) ? 2 : type == kBool ? 0 : 1;
}

ScalarType larger_type(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (kind_of(a) == 2) {
    if (elementSize(a) == elementSize(b)) return kFloat;  // float16 and bfloat16
    return elementSize(a) > elementSize(b) ? a : b;
  }
  const auto is_unsigned = [](ScalarType t) { return t == kByte || t == kUInt16 || t == kUInt32; };
  const int64_t most = std::max(elementSize(a), elementSize(b));
  if (is_unsigned(a) == is_unsigned(b)) return elementSize(a) == most ? a : b;
  const ScalarType with_sign = is_unsigned(a) ? b : a;
  if (elementSize(with_sign) > elementSize(is_unsigned(a) ? a : b)) return with_sign;
  return most == 1 ? kShort : most == 2 ? kInt : kLong;
}

/// Float16 and bfloat16 are computed in float32.
ScalarType computed(ScalarType type) {
  return isReducedFloatingType(type) ? kFloat : type;
}
ScalarType real(ScalarType type) {
  return isFloatingType(type) ? type : kFloat;
}

Tensor value_of(const Scalar& value, ScalarType type) {
  return full({}, value, type);
}

/// f of each pair, computed in `type`: of this type, or truth values where f gives these.
Tensor pairs(const Tensor& a, const Tensor& b, ScalarType type, const auto& f) {
  const std::vector<int64_t> shape = common_shape(a.sizes(), b.sizes());
  const ScalarType in = computed(type);
  const Tensor x = a.to(in).expand(shape), y = b.to(in).expand(shape);
  return with_type(in, [&](auto as) {
    using T = decltype(as);
    constexpr bool kTests = std::is_same_v<decltype(f(as, as)), bool>;
    using Result = std::conditional_t<kTests, bool, T>;
    const Tensor made = empty(shape, kTests ? kBool : in);
    map<Result, T>(made, x, y, [&](T p, T q) { return static_cast<Result>(f(p, q)); });
    return kTests ? made : made.to(type);
  });
}
/// f of each element, likewise.
Tensor each(const Tensor& a, ScalarType type, const auto& f) {
  const ScalarType in = computed(type);
  const Tensor x = a.to(in);
  return with_type(in, [&](auto as) {
    using T = decltype(as);
    constexpr bool kTests = std::is_same_v<decltype(f(as)), bool>;
    using Result = std::conditional_t<kTests, bool, T>;
    const Tensor made = empty(a.sizes(), kTests ? kBool : in);
    map<Result, T>(made, x, [&](T p) { return static_cast<Result>(f(p)); });
    return kTests ? made : made.to(type);
  });
}

struct Fmod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(a, b);
    else
      return static_cast<T>(b == 0 ? 0 : a % b);
  }
};
struct Remainder {  // with the sign of the divisor
  template <class T>
  T operator()(T a, T b) const {
    const T rest = Fmod()(a, b);
    return static_cast<T>(rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest);
  }
};
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(a) || !(a < b || std::isnan(b)) ? a : b;
    else
      return std::max(a, b);
  }
};
struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(a) || !(b < a || std::isnan(b)) ? a : b;
    else
      return std::min(a, b);
  }
};

}  // namespace

std::vector<int64_t> common_shape(IntArrayRef a, IntArrayRef b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      throw Error("tensors of sizes that don't fit: " + std::to_string(of_a) + " and " +
                  std::to_string(of_b));
    }
    shape[shape.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return shape;
}
ScalarType common_type(const Tensor& a, const Tensor& b) {
  const ScalarType x = a.scalar_type(), y = b.scalar_type();
  if ((a.dim() == 0) != (b.dim() == 0)) {
    const ScalarType whole = a.dim() == 0 ? y : x, one = a.dim() == 0 ? x : y;
    if (kind_of(one) <= kind_of(whole)) return whole;
  }
  return larger_type(x, y);
}
ScalarType common_type(const Tensor& a, const Scalar& b) {
  if (kind_of(b.type) <= kind_of(a.scalar_type())) return a.scalar_type();
  return b.type == kDouble ? kFloat : b.type;
}

#define CYTRA_OF_PAIRS(name, F)                                  \
  Tensor Tensor::name(const Tensor& b) const {                   \
    return pairs(*this, b, common_type(*this, b), F());          \
  }                                                              \
  Tensor Tensor::name(const Scalar& b) const {                   \
    const ScalarType type = common_type(*this, b);               \
    return pairs(*this, value_of(b, computed(type)), type, F()); \
  }
CYTRA_OF_PAIRS(add, std::plus<>)
CYTRA_OF_PAIRS(sub, std::minus<>)
CYTRA_OF_PAIRS(mul, std::multiplies<>)
CYTRA_OF_PAIRS(fmod, Fmod)
CYTRA_OF_PAIRS(remainder, Remainder)
CYTRA_OF_PAIRS(clamp_min, Larger)
CYTRA_OF_PAIRS(clamp_max, Smaller)
CYTRA_OF_PAIRS(eq, std::equal_to<>)
CYTRA_OF_PAIRS(ne, std::not_equal_to<>)
CYTRA_OF_PAIRS(lt, std::less<>)
CYTRA_OF_PAIRS(le, std::less_equal<>)
CYTRA_OF_PAIRS(gt, std::greater<>)
CYTRA_OF_PAIRS(ge, std::greater_equal<>)
CYTRA_OF_PAIRS(logical_and, std::logical_and<>)
CYTRA_OF_PAIRS(logical_or, std::logical_or<>)
Tensor Tensor::div(const Tensor& b) const {
  return pairs(*this, b, real(common_type(*this, b)), std::divides<>());
}
Tensor Tensor::div(const Scalar& b) const {
  const ScalarType type = real(common_type(*this, b));
  return pairs(*this, value_of(b, computed(type)), type, std::divides<>());
}

Tensor operator-(const Scalar& a, const Tensor& b) {
  const ScalarType type = common_type(b, a);
  return pairs(value_of(a, computed(type)), b, type, std::minus<>());
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return a.clamp_max(b);
}
Tensor maximum(const Tensor& a, const Tensor& b) {
  return a.clamp_min(b);
}
Tensor logaddexp(const Tensor& a, const Tensor& b) {
  return pairs(a, b, real(common_type(a, b)), [](auto x, auto y) {
    const double high = std::max<double>(x, y), low = std::min<double>(x, y);
    return high + std::log1p(std::exp(low - high));
  });
}

Tensor Tensor::clamp(const std::optional<Scalar>& low, const std::optional<Scalar>& high) const {
  Tensor result = *this;
  if (low) result = result.clamp_min(*low);
  if (high) result = result.clamp_max(*high);
  return result;
}

#define CYTRA_REAL(name, expression)                                            \
  Tensor Tensor::name() const {                                                 \
    return each(*this, real(scalar_type()), [](auto x) { return expression; }); \
  }
CYTRA_REAL(exp, std::exp(x))
CYTRA_REAL(log, std::log(x))
CYTRA_REAL(sqrt, std::sqrt(x))
CYTRA_REAL(sigmoid, 1 / (1 + std::exp(-x)))
#define CYTRA_SAME(name, expression)                                      \
  Tensor Tensor::name() const {                                           \
    return each(*this, scalar_type(), [](auto x) { return expression; }); \
  }
CYTRA_SAME(abs,
           (std::is_same_v<decltype(x), bool>
                ? x
                : static_cast<decltype(x)>(std::is_unsigned_v<decltype(x)> || x > decltype(x)(0)
                                               ? x
                                               : 0 - x)))
CYTRA_SAME(neg, -x)
CYTRA_SAME(square, x* x)
#define CYTRA_ROUNDED(name, function)                                                           \
  Tensor Tensor::name() const {                                                                 \
    return is_floating_point() ? each(*this, scalar_type(), [](auto x) { return function(x); }) \
                               : *this;                                                         \
  }
CYTRA_ROUNDED(round, std::nearbyint)
CYTRA_ROUNDED(floor, std::floor)
CYTRA_ROUNDED(trunc, std::trunc)
Tensor Tensor::isfinite() const {
  return each(*this, scalar_type(), [](auto x) { return std::isfinite(static_cast<double>(x)); });
}
Tensor Tensor::logical_not() const {
  return each(*this, scalar_type(), [](auto x) { return x == decltype(x)(0); });
}
Tensor Tensor::logit(std::optional<double> eps) const {
  const Tensor within = eps ? clamp(*eps, 1 - *eps) : *this;
  return each(within, real(scalar_type()), [](auto x) { return std::log(x / (1 - x)); });
}
Tensor special_entr(const Tensor& x) {
  return each(x, real(x.scalar_type()), [](auto value) {
    const double p = value;
    return p > 0 ? -p * std::log(p) : p == 0 ? 0.0 : p < 0 ? -INFINITY : NAN;
  });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const ScalarType type = common_type(a, b);
  const std::vector<int64_t> shape =
      common_shape(condition.sizes(), common_shape(a.sizes(), b.sizes()));
  const Tensor is_first = condition.to(kBool).expand(shape), x = a.to(type).expand(shape),
               y = b.to(type).expand(shape);
  const Tensor made = empty(shape, type);
  with_any_type(type, [&](auto as) {
    using T = decltype(as);
    T* to = made.mutable_data_ptr<T>();
    const bool* c = is_first.const_data_ptr<bool>();
    const T *p = x.const_data_ptr<T>(), *q = y.const_data_ptr<T>();
    walk({&made, &is_first, &x, &y}, [&](const Four& at, const Four& by, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        to[at[0] + i * by[0]] = c[at[1] + i * by[1]] ? p[at[2] + i * by[2]] : q[at[3] + i * by[3]];
    });
  });
  return made;
}
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  return where(condition, a, value_of(b, common_type(a, b)));
}
Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b) {
  const ScalarType type =
      a.type == kDouble || b.type == kDouble ? kFloat : std::max(a.type, b.type);
  return where(condition, value_of(a, type), value_of(b, type));
}

}  // namespace at
