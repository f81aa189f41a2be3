#include "io/pixels/stored.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace cytra::io {
namespace {

template <class T, bool kSwapped>
T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (!kSwapped || sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(__builtin_bswap16(std::bit_cast<uint16_t>(value)));
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(__builtin_bswap32(std::bit_cast<uint32_t>(value)));
  } else {
    return std::bit_cast<T>(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  }
}

/// Calls action(T{}, is_swapped as a constant) for the type that is stored.
void with_order(const StoredType& type, const auto& action) {
  with_type(type, [&](auto value) {
    if (type.is_swapped && sizeof value > 1) return action(value, std::true_type{});
    action(value, std::false_type{});
  });
}

/// The value in the type of ours that a stored T becomes.
template <class T>
auto ours(const std::string& path, T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return half_to_float(value.bits);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    using Ours = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
    if (!std::in_range<Ours>(value)) {
      throw DataError(
          "{}: a 64-bit integer holds {}, expected values of 32 bits at most; save it as 32-bit "
          "integers or float64",
          path,
          value);
    }
    return static_cast<Ours>(value);
  } else {
    return value;
  }
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return static_cast<double>(half_to_float(value.bits));
  else
    return static_cast<double>(value);
}

}  // namespace

float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023);
  const float magnitude = exponent == 31  ? (half & 1023) == 0
                                                ? std::numeric_limits<float>::infinity()
                                                : std::numeric_limits<float>::quiet_NaN()
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(fraction + 1024, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::optional<Dtype> dtype_of(const StoredType& type) {
  const int bits = type.bits;
  const bool is_whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (type.kind == 'u' && is_whole)
    return bits == 8 ? Dtype::u8 : bits == 16 ? Dtype::u16 : Dtype::u32;
  if (type.kind == 'i' && is_whole)
    return bits == 8 ? Dtype::i8 : bits == 16 ? Dtype::i16 : Dtype::i32;
  if (type.kind == 'f' && is_whole && bits > 8) return bits == 64 ? Dtype::f64 : Dtype::f32;
  return std::nullopt;
}

void convert(const std::string& path,
             const StoredType& type,
             const unsigned char* from,
             std::ptrdiff_t step,
             int64_t count,
             unsigned char* into) {
  with_order(type, [&](auto stored, auto is_swapped) {
    using T = decltype(stored);
    using Ours = decltype(ours(path, stored));
    if (std::is_same_v<T, Ours> && !is_swapped && step == static_cast<std::ptrdiff_t>(sizeof(T))) {
      std::memcpy(into, from, static_cast<std::size_t>(count) * sizeof(T));
      return;
    }
    const unsigned char* next = from;
    unsigned char* at = into;
    for (int64_t i = 0; i < count; ++i, next += step, at += sizeof(Ours)) {
      const Ours value = ours(path, load<T, is_swapped>(next));
      std::memcpy(at, &value, sizeof value);
    }
  });
}

void convert_scaled(const StoredType& type,
                    const Scale& scale,
                    const unsigned char* from,
                    std::ptrdiff_t step,
                    int64_t count,
                    unsigned char* into) {
  with_order(type, [&](auto stored, auto is_swapped) {
    using T = decltype(stored);
    const unsigned char* next = from;
    unsigned char* at = into;
    for (int64_t i = 0; i < count; ++i, next += step, at += sizeof(float)) {
      const auto value =
          static_cast<float>(scale.slope * as_double(load<T, is_swapped>(next)) + scale.offset);
      std::memcpy(at, &value, sizeof value);
    }
  });
}

}  // namespace cytra::io
