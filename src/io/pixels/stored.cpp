#include "io/pixels/stored.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::io {
namespace {

template <std::size_t Size>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

uint8_t swap(uint8_t bits) {
  return bits;
}
uint16_t swap(uint16_t bits) {
  return __builtin_bswap16(bits);
}
uint32_t swap(uint32_t bits) {
  return __builtin_bswap32(bits);
}
uint64_t swap(uint64_t bits) {
  return __builtin_bswap64(bits);
}

template <class T, bool kSwapped>
T load(const unsigned char* from) {
  typename UnsignedOf<sizeof(T)>::type bits;
  std::memcpy(&bits, from, sizeof bits);
  if (kSwapped) bits = swap(bits);
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Half {
  uint16_t bits;
};

/// Calls action(T{}, is_swapped as a constant) for the type that is stored.
template <class Action>
void with_type(const StoredType& type, const Action& action) {
  const auto both = [&](auto value) {
    if (type.is_swapped && sizeof value > 1) return action(value, std::true_type{});
    action(value, std::false_type{});
  };
  switch (type.kind * 100 + type.bits) {
    case 'u' * 100 + 8:
      return both(uint8_t{});
    case 'u' * 100 + 16:
      return both(uint16_t{});
    case 'u' * 100 + 32:
      return both(uint32_t{});
    case 'u' * 100 + 64:
      return both(uint64_t{});
    case 'i' * 100 + 8:
      return both(int8_t{});
    case 'i' * 100 + 16:
      return both(int16_t{});
    case 'i' * 100 + 32:
      return both(int32_t{});
    case 'i' * 100 + 64:
      return both(int64_t{});
    case 'f' * 100 + 16:
      return both(Half{});
    case 'f' * 100 + 32:
      return both(float{});
    case 'f' * 100 + 64:
      return both(double{});
    default:
      throw std::logic_error("a stored type without a conversion");
  }
}

/// The type that a stored T becomes.
template <class T>
struct MemoryTypeOf {
  using type = T;
};
template <>
struct MemoryTypeOf<uint64_t> {
  using type = uint32_t;
};
template <>
struct MemoryTypeOf<int64_t> {
  using type = int32_t;
};
template <>
struct MemoryTypeOf<Half> {
  using type = float;
};

template <class T>
T ours(const std::string&, T value) {
  return value;
}
float ours(const std::string&, Half value) {
  return half_to_float(value.bits);
}
template <class Wide>
typename MemoryTypeOf<Wide>::type narrow(const std::string& path, Wide value) {
  using Ours = typename MemoryTypeOf<Wide>::type;
  using Limits = std::numeric_limits<Ours>;
  if (value > static_cast<Wide>(Limits::max()) || value < static_cast<Wide>(Limits::min())) {
    throw DataError(
        fmt::format("{}: a 64-bit integer holds {}, expected values of 32 bits at most; save it as "
                    "32-bit integers or float64",
                    path,
                    value));
  }
  return static_cast<Ours>(value);
}
uint32_t ours(const std::string& path, uint64_t value) {
  return narrow(path, value);
}
int32_t ours(const std::string& path, int64_t value) {
  return narrow(path, value);
}

template <class T>
double as_double(T value) {
  return static_cast<double>(value);
}
double as_double(Half value) {
  return static_cast<double>(half_to_float(value.bits));
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
  switch (type.kind * 100 + type.bits) {
    case 'u' * 100 + 8:
      return Dtype::u8;
    case 'u' * 100 + 16:
      return Dtype::u16;
    case 'u' * 100 + 32:
    case 'u' * 100 + 64:
      return Dtype::u32;
    case 'i' * 100 + 8:
      return Dtype::i8;
    case 'i' * 100 + 16:
      return Dtype::i16;
    case 'i' * 100 + 32:
    case 'i' * 100 + 64:
      return Dtype::i32;
    case 'f' * 100 + 16:
    case 'f' * 100 + 32:
      return Dtype::f32;
    case 'f' * 100 + 64:
      return Dtype::f64;
    default:
      return std::nullopt;
  }
}

void convert(const std::string& path,
             const StoredType& type,
             const unsigned char* from,
             std::ptrdiff_t step,
             int64_t count,
             unsigned char* into) {
  with_type(type, [&](auto stored, auto is_swapped) {
    using T = decltype(stored);
    using Ours = typename MemoryTypeOf<T>::type;
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
  with_type(type, [&](auto stored, auto is_swapped) {
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
