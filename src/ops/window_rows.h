#pragma once
// The arithmetic of the sliding window's passes. A row is a line along X; what it does at each x is
// an operator that a loop on a CPU and a thread on a GPU call.
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define CYTRA_VOXEL __host__ __device__ __forceinline__
#else
#define CYTRA_VOXEL __attribute__((always_inline)) inline
#endif

namespace cytra::ops::rows {

/// Of a window: the product of its factors, at least `floor`.
struct Weight {
  const float* along_x;
  float across, floor;
  CYTRA_VOXEL float operator()(int64_t x) const {
    const float weight = across * along_x[x];
    return weight > floor ? weight : floor;
  }
};

/// Kind of sum at x: the first of its windows sets it.
template <class T>
struct Sum {
  float* sums;
  const T* values;
  int64_t stride;  // of values, along X
  Weight weight;
  CYTRA_VOXEL void add(int64_t x) const {
    sums[x] += static_cast<float>(values[x * stride]) * weight(x);
  }
  CYTRA_VOXEL void set(int64_t x) const {
    sums[x] = static_cast<float>(values[x * stride]) * weight(x);
  }
};

/// A window's row out of an image's.
template <class T>
struct Crop {
  const T* image;
  float* window;
  int64_t stride;  // of window, along X
  CYTRA_VOXEL void operator()(int64_t x) const {
    window[x * stride] = static_cast<float>(image[x]);
  }
};

// Vectors are GCC's and Clang's vector_size type; a float stands for a vector of one lane.

template <class V>
struct Lanes {
  using Bits = uint32_t;
  static constexpr int64_t count = 1;
};
#if !defined(__CUDACC__)
using Quad = float __attribute__((vector_size(16)));
template <>
struct Lanes<Quad> {
  using Bits = uint32_t __attribute__((vector_size(16)));
  static constexpr int64_t count = 4;
};
#endif

template <class To, class From>
CYTRA_VOXEL To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To bits;
  std::memcpy(&bits, &value, sizeof(To));
  return bits;
}

/// e^x within 2e-7 of its size; not below e^-87.
/// Source: Cephes expf; 2^n by way of the bits of 1.5 * 2^23 + n.
template <class V>
CYTRA_VOXEL V exponential(V x) {
  using Bits = typename Lanes<V>::Bits;
  const V low = V{} - 87.F, high = V{} + 88.F;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const V shifted = x * 1.44269504F + 12582912.F;
  const V n = shifted - 12582912.F;
  const V r = x - n * 0.693359375F + n * 2.12194440e-4F;
  V y = r * 1.9875691500e-4F + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * r * r + r + 1.F;
  return bits_of<V>(bits_of<Bits>(y) + (bits_of<Bits>(shifted) << 23));
}

/// The sums of all classes at x, and what is made of them. `bad` becomes NaN when one is not
/// finite.
template <class V>
struct Voxel {
  const float* sums;
  int64_t classes, stride;  // from class to class
  V weight, bad;
  CYTRA_VOXEL V sum(int64_t k, int64_t x) {
    V value;
    std::memcpy(&value, sums + k * stride + x, sizeof(V));
    bad += value * 0.F;
    return value;
  }
  CYTRA_VOXEL V logit(int64_t k, int64_t x) { return sum(k, x) / weight; }
  CYTRA_VOXEL V sigmoid(int64_t k, int64_t x) {
    return 1.F / (1.F + exponential(V{} - logit(k, x)));
  }
  /// Whether logit > cut.
  CYTRA_VOXEL V above(int64_t k, int64_t x, float cut) {
    const V one = V{} + 1.F, none = V{};
    return sum(k, x) > weight * cut ? one : none;
  }
  /// Of equal ones the first. Weights do not change it.
  CYTRA_VOXEL V argmax(int64_t x) {
    V most = sum(0, x), best = V{};
    for (int64_t k = 1; k < classes; ++k) {
      const V value = sum(k, x), number = V{} + static_cast<float>(k);
      best = value > most ? number : best;
      most = value > most ? value : most;
    }
    return best;
  }
  struct Softmax {
    V most, scale;
  };
  CYTRA_VOXEL Softmax softmax(int64_t x) {
    V most = sum(0, x), total = V{};
    for (int64_t k = 1; k < classes; ++k) {
      const V value = sum(k, x);
      most = value > most ? value : most;
    }
    for (int64_t k = 0; k < classes; ++k) total += exponential((sum(k, x) - most) / weight);
    return {most, 1.F / total};
  }
  CYTRA_VOXEL V probability(int64_t k, int64_t x, const Softmax& of) {
    return exponential((sum(k, x) - of.most) / weight) * of.scale;
  }
};

}  // namespace cytra::ops::rows
