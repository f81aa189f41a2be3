#pragma once
// How files store a sample, and its conversion to one of ours; for the formats only.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "io/image.h"

namespace cytra::io {

struct StoredType {
  char kind = 'u';          // u: unsigned, i: signed integer, f: floating point
  int bits = 8;             // 8, 16, 32 or 64
  bool is_swapped = false;  // its bytes are not in this machine's order
  std::size_t size() const { return static_cast<std::size_t>(bits) / 8; }
};
struct Half {  // of IEEE 754 binary16
  uint16_t bits;
};
struct Scale {
  double slope = 1, offset = 0;
};

/// The type that holds the values exactly: float16 as f32; 64-bit integers as 32-bit ones, where
/// convert() throws for a value that does not fit. None for a type that we don't know.
std::optional<Dtype> dtype_of(const StoredType& type);

/// Calls action with a value of the type.
auto with_type(Dtype dtype, const auto& action) {
  switch (dtype) {
    case Dtype::u8:
      return action(uint8_t{});
    case Dtype::i8:
      return action(int8_t{});
    case Dtype::u16:
      return action(uint16_t{});
    case Dtype::i16:
      return action(int16_t{});
    case Dtype::u32:
      return action(uint32_t{});
    case Dtype::i32:
      return action(int32_t{});
    case Dtype::f32:
      return action(float{});
    case Dtype::f64:
      return action(double{});
  }
  throw std::logic_error("unknown sample type");
}
/// Calls action with a value of the type that dtype_of() knows.
auto with_type(const StoredType& type, const auto& action) {
  if (type.kind == 'f' && type.bits == 16) return action(Half{});
  if (type.kind == 'u' && type.bits == 64) return action(uint64_t{});
  if (type.kind == 'i' && type.bits == 64) return action(int64_t{});
  return with_type(dtype_of(type).value(), action);
}

/// Copies `count` values that are `step` bytes apart to contiguous values of dtype_of(type).
/// Throws: DataError naming `path` when a 64-bit integer does not fit into 32 bits.
void convert(const std::string& path,
             const StoredType& type,
             const unsigned char* from,
             std::ptrdiff_t step,
             int64_t count,
             unsigned char* into);
/// Converts to slope * value + offset, computed in double precision, as f32.
void convert_scaled(const StoredType& type,
                    const Scale& scale,
                    const unsigned char* from,
                    std::ptrdiff_t step,
                    int64_t count,
                    unsigned char* into);

/// The value of IEEE 754 binary16.
float half_to_float(uint16_t half);

}  // namespace cytra::io
