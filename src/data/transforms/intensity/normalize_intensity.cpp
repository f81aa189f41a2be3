// NormalizeIntensityd: (x - mean) / deviation. Source: monai.transforms.NormalizeIntensityd
// (population deviation).
#include <algorithm>
#include <array>
#include <cmath>

#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

struct Moments {
  double count, mean, deviation;
};

/// Of all values, or of those that are not 0. One pass, in double: a float sum over 10^8 voxels is
/// off by more than the peer's tolerance. Lanes, for the compiler has no leave to reorder a sum.
template <bool kNonzero>
Moments moments_of(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;
  const double shift = count > 0 ? values[0] : 0;  // squares of differences, not of large values
  std::array<double, kLanes> sums{}, squares{}, counts{};
  const auto add = [&](std::size_t lane, float value) {
    const double weight = !kNonzero || value != 0 ? 1 : 0;
    const double difference = weight * (value - shift);
    sums[lane] += difference;
    squares[lane] += difference * difference;
    if constexpr (kNonzero) counts[lane] += weight;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      add(lane, values[i + static_cast<int64_t>(lane)]);
  }
  for (; i < count; ++i) add(0, values[i]);
  double sum = 0, square = 0, n = kNonzero ? 0 : static_cast<double>(count);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sum += sums[lane];
    square += squares[lane];
    n += counts[lane];
  }
  return {n, shift + sum / n, std::sqrt(std::max(square - sum * sum / n, 0.0) / n)};
}

struct NormalizeIntensityd : KeyOptions {
  std::vector<double> subtrahend, divisor;
  bool nonzero = false, channel_wise = false;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("subtrahend",
      subtrahend,
      "subtract this, one number or one per channel (channel_wise); default: the mean");
    v("divisor",
      divisor,
      "divide by this, likewise; default: the standard deviation, or 1 when that is 0");
    v("nonzero", nonzero, "leave zeros as they are and out of the statistics");
    v("channel_wise", channel_wise, "each channel by itself");
  }
  void check() const {
    if (!channel_wise && (subtrahend.size() > 1 || divisor.size() > 1))
      throw ConfigError("subtrahend, divisor: expected one number unless channel_wise is true");
  }

  at::Tensor operator()(const at::Tensor& image) const {
    for (const std::size_t numbers : {subtrahend.size(), divisor.size()}) {
      if (numbers > 1 && static_cast<int64_t>(numbers) != image.size(0)) {
        throw DataError(std::to_string(image.size(0)) + " channels, expected " +
                        std::to_string(numbers) + " as subtrahend or divisor have numbers");
      }
    }
    const at::Tensor in = image.contiguous();
    at::Tensor out = at::empty_like(in);
    const int64_t parts = channel_wise ? in.size(0) : 1,
                  count = in.numel() / std::max<int64_t>(parts, 1);
    for (int64_t part = 0; part < parts; ++part) {
      const float* from = in.const_data_ptr<float>() + part * count;
      float* to = out.mutable_data_ptr<float>() + part * count;
      const auto [mean, scale] = numbers_of(from, count, static_cast<std::size_t>(part));
      for (int64_t i = 0; i < count; ++i) {
        const float value = (from[i] - mean) * scale;
        to[i] = nonzero && from[i] == 0 ? 0 : value;
      }
    }
    return out;
  }

 private:
  struct Numbers {
    float mean, scale;  // result = (value - mean) * scale
  };
  Numbers numbers_of(const float* values, int64_t count, std::size_t channel) const {
    double mean = given(subtrahend, channel), deviation = given(divisor, channel);
    if (subtrahend.empty() || divisor.empty()) {
      const Moments moments =
          nonzero ? moments_of<true>(values, count) : moments_of<false>(values, count);
      if (moments.count == 0) return {0, 1};
      if (subtrahend.empty()) mean = moments.mean;
      if (divisor.empty()) deviation = moments.deviation;
    }
    return {static_cast<float>(mean), static_cast<float>(1 / (deviation == 0 ? 1 : deviation))};
  }
  static double given(const std::vector<double>& numbers, std::size_t channel) {
    return numbers.empty() ? 0 : numbers[numbers.size() == 1 ? 0 : channel];
  }
};
CYTRA_REGISTER(Transform, PerKey<NormalizeIntensityd>, "NormalizeIntensityd");

}  // namespace
}  // namespace cytra::data
