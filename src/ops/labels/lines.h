#pragma once
// Separable operations along an axis that is not the innermost.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace cytra::ops {

/// Calls change(line) for every line of `length` values that lie `stride` apart, in place; there
/// are `outer` groups of `stride` lines each, of which [begin, end) are processed. Lines are
/// gathered sixteen at a time into dense ones: the width of a cache line.
void for_lines(float* data,
               int64_t outer,
               int64_t length,
               int64_t stride,
               int64_t begin,
               int64_t end,
               const auto& change) {
  if (stride == 1) {
    for (int64_t o = 0; o < outer; ++o) change(data + o * length);
    return;
  }
  constexpr int64_t kLines = 16;
  std::vector<float> lines(static_cast<std::size_t>(kLines * length));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t x = begin; x < end; x += kLines) {
      const int64_t width = std::min(kLines, end - x);
      float* const corner = data + o * length * stride + x;
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t k = 0; k < width; ++k)
          lines[static_cast<std::size_t>(k * length + i)] = corner[i * stride + k];
      }
      for (int64_t k = 0; k < width; ++k) change(lines.data() + k * length);
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t k = 0; k < width; ++k)
          corner[i * stride + k] = lines[static_cast<std::size_t>(k * length + i)];
      }
    }
  }
}

}  // namespace cytra::ops
