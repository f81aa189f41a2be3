#include "io/zarr/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace cytra::io {
namespace {

float to_float(uint16_t half) {  // IEEE 754 binary16
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
  uint32_t bits = sign;
  if (exponent == 31) {
    bits |= 0x7f800000 | mantissa << 13;
  } else if (exponent != 0) {
    bits |= (exponent + 112) << 23 | mantissa << 13;
  } else {
    const float value = static_cast<float>(mantissa) / 16777216.0F;
    return sign != 0 ? -value : value;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class From, class To>
To narrow_value(From value, const std::string& place) {
  if (value < From{std::numeric_limits<To>::lowest()} ||
      value > From{std::numeric_limits<To>::max()}) {
    throw DataError("{}: the value {} does not fit, expected {}-bit integers at most",
                    place,
                    value,
                    8 * sizeof(To));
  }
  return static_cast<To>(value);
}

/// Copies one row; steps are in samples.
template <class From, class To, class Convert>
void copy_row(const unsigned char* from,
              int64_t from_step,
              unsigned char* into,
              int64_t into_step,
              int64_t count,
              const Convert& convert) {
  if (std::is_same_v<From, To> && from_step == 1 && into_step == 1) {
    std::memcpy(into, from, static_cast<std::size_t>(count) * sizeof(To));
    return;
  }
  if (from_step == 0) {  // the fill value
    From value;
    std::memcpy(&value, from, sizeof value);
    const To converted = convert(value);
    if (into_step == 1 && reinterpret_cast<uintptr_t>(into) % alignof(To) == 0) {
      std::fill_n(reinterpret_cast<To*>(into), count, converted);
    } else {
      for (; count > 0; --count, into += into_step * static_cast<int64_t>(sizeof(To)))
        std::memcpy(into, &converted, sizeof converted);
    }
    return;
  }
  const auto from_bytes = from_step * static_cast<int64_t>(sizeof(From)),
             into_bytes = into_step * static_cast<int64_t>(sizeof(To));
  for (; count > 0; --count, from += from_bytes, into += into_bytes) {
    From value;
    std::memcpy(&value, from, sizeof value);
    const To converted = convert(value);
    std::memcpy(into, &converted, sizeof converted);
  }
}

template <class From, class To, class Convert>
void copy(std::size_t rank,
          const Extent& size,
          const unsigned char* from,
          const Extent& from_strides,
          unsigned char* into,
          const Extent& into_strides,
          const Convert& convert) {
  const std::size_t last = rank - 1;
  Extent at{};
  for (;;) {
    int64_t from_offset = 0, into_offset = 0;
    for (std::size_t i = 0; i < last; ++i) {
      from_offset += at[i] * from_strides[i];
      into_offset += at[i] * into_strides[i];
    }
    copy_row<From, To>(from + from_offset * static_cast<int64_t>(sizeof(From)),
                       from_strides[last],
                       into + into_offset * static_cast<int64_t>(sizeof(To)),
                       into_strides[last],
                       size[last],
                       convert);
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == size[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

template <class T>
void swap_as(unsigned char* data, std::size_t bytes, T (*swap)(T)) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T value;
    std::memcpy(&value, data + i, sizeof value);
    value = swap(value);
    std::memcpy(data + i, &value, sizeof value);
  }
}

}  // namespace

void copy_box(const ZarrType& type,
              std::size_t rank,
              const Extent& size,
              const unsigned char* from,
              const Extent& from_strides,
              unsigned char* into,
              const Extent& into_strides,
              const std::string& place) {
  const auto as = [&](auto sample, auto read_as, const auto& convert) {
    copy<decltype(sample), decltype(read_as)>(
        rank, size, from, from_strides, into, into_strides, convert);
  };
  const auto same = [](auto value) { return value; };
  if (type.kind == 'f' && type.bytes == 2) return as(uint16_t{}, float{}, to_float);
  if (type.kind == 'i' && type.bytes == 8) {
    return as(int64_t{}, int32_t{}, [&](int64_t value) {
      return narrow_value<int64_t, int32_t>(value, place);
    });
  }
  if (type.kind == 'u' && type.bytes == 8) {
    return as(uint64_t{}, uint32_t{}, [&](uint64_t value) {
      return narrow_value<uint64_t, uint32_t>(value, place);
    });
  }
  if (type.bytes == 1) return as(uint8_t{}, uint8_t{}, same);
  if (type.bytes == 2) return as(uint16_t{}, uint16_t{}, same);
  if (type.bytes == 4) return as(uint32_t{}, uint32_t{}, same);
  as(uint64_t{}, uint64_t{}, same);
}

void swap_bytes(unsigned char* data, std::size_t bytes, std::size_t sample_bytes) {
  if (sample_bytes == 2)
    swap_as<uint16_t>(data, bytes, [](uint16_t value) { return __builtin_bswap16(value); });
  if (sample_bytes == 4)
    swap_as<uint32_t>(data, bytes, [](uint32_t value) { return __builtin_bswap32(value); });
  if (sample_bytes == 8)
    swap_as<uint64_t>(data, bytes, [](uint64_t value) { return __builtin_bswap64(value); });
}

Extent c_strides(const Extent& shape, std::size_t rank) {
  Extent strides{};
  int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

}  // namespace cytra::io
