#pragma once
#include <cstdint>

namespace cytra::ops::cpu {

// The bits of one: what kernels read and write, never compute in.
enum class Bfloat16 : uint16_t {};
enum class Float16 : uint16_t {};

}  // namespace cytra::ops::cpu
