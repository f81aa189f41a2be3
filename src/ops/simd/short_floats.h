#pragma once
#include <cstdint>

namespace cytra::ops::cpu {

// The bits of a short float: kernels read and write these types, but never compute in them.
enum class Bfloat16 : uint16_t {};
enum class Float16 : uint16_t {};

}  // namespace cytra::ops::cpu
