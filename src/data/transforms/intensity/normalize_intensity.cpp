// NormalizeIntensityd: (x - mean) / deviation. Source: monai.transforms.NormalizeIntensityd
// (population deviation).
#include <algorithm>
#include <array>
#include <cmath>

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct Moments {
  double count = 0, mean = 0, squares = 0;  // of differences from the mean
  double deviation() const { return std::sqrt(std::max(squares, 0.0) / count); }
};

/// The moments of both together. Source: Chan, Golub, LeVeque, "Updating formulae", 1979.
Moments merged(const Moments& a, const Moments& b) {
  const double count = a.count + b.count, step = b.mean - a.mean;
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  return {count,
          a.mean + step * b.count / count,
          a.squares + b.squares + step * step * a.count * b.count / count};
}

/// Sums the moments of all values, or of those that are not 0. The result is the same to the bit,
/// however the values are divided into calls. It takes one pass, in double, as the error of a
/// float sum over 10^8 voxels exceeds MONAI's tolerance; in lanes, as the compiler may not reorder
/// a sum.
class MomentSums {
 public:
  template <bool kNonzero>
  void add(const float* values, int64_t count) {
    if (added_ == 0 && count > 0) shift_ = values[0];  // sums squares of differences
    int64_t i = 0;
    for (; i < count && (added_ + i) % kLanes != 0; ++i) add_one<kNonzero>(added_ + i, values[i]);
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) add_one<kNonzero>(lane, values[i + lane]);
    }
    for (; i < count; ++i) add_one<kNonzero>(added_ + i, values[i]);
    added_ += count;
  }
  template <bool kNonzero>
  Moments moments() const {
    double sum = 0, square = 0, n = kNonzero ? 0 : static_cast<double>(added_);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum += sums_[lane];
      square += squares_[lane];
      n += counts_[lane];
    }
    return n == 0 ? Moments{} : Moments{n, shift_ + sum / n, square - sum * sum / n};
  }

 private:
  static constexpr int64_t kLanes = 8;
  template <bool kNonzero>
  void add_one(int64_t index, float value) {
    const auto lane = static_cast<std::size_t>(index % kLanes);
    const double weight = !kNonzero || value != 0 ? 1 : 0;
    const double difference = weight * (value - shift_);
    sums_[lane] += difference;
    squares_[lane] += difference * difference;
    if constexpr (kNonzero) counts_[lane] += weight;
  }
  double shift_ = 0;
  int64_t added_ = 0;
  std::array<double, kLanes> sums_{}, squares_{}, counts_{};
};

struct NormalizeIntensityd : KeyOptions {
  std::vector<double> subtrahend, divisor;
  bool nonzero = false, channel_wise = false;
  void visit(auto& v) {
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
    return by_rows([&](const Rows& look) { look(image); })(image);
  }
  RowChange by_rows(const Scan& scan) const {
    std::vector<Moments> moments;
    if (subtrahend.empty() || divisor.empty())
      moments = nonzero ? moments_of<true>(scan) : moments_of<false>(scan);
    return [this, moments = std::move(moments)](const at::Tensor& rows) {
      return changed(rows.contiguous(), moments);
    };
  }

 private:
  struct Numbers {
    float mean, scale;  // result = (value - mean) * scale
  };
  /// The moments of each channel when channel_wise, else of the image.
  template <bool kNonzero>
  std::vector<Moments> moments_of(const Scan& scan) const {
    std::vector<MomentSums> sums;
    scan([&](const at::Tensor& rows) {
      const at::Tensor dense = rows.contiguous();
      sums.resize(static_cast<std::size_t>(dense.size(0)));
      const int64_t count = dense.numel() / std::max<int64_t>(dense.size(0), 1);
      const float* values = dense.const_data_ptr<float>();
      for (MomentSums& channel : sums) {
        channel.template add<kNonzero>(values, count);
        values += count;
      }
    });
    std::vector<Moments> moments;
    for (const MomentSums& channel : sums) {
      const Moments own = channel.template moments<kNonzero>();
      if (channel_wise || moments.empty()) {
        moments.push_back(own);
      } else {
        moments[0] = merged(moments[0], own);
      }
    }
    return moments;
  }
  /// Normalises the image. `moments`: empty where the options have both numbers.
  at::Tensor changed(const at::Tensor& in, const std::vector<Moments>& moments) const {
    for (const std::size_t numbers : {subtrahend.size(), divisor.size()}) {
      if (numbers > 1 && static_cast<int64_t>(numbers) != in.size(0)) {
        throw DataError(std::to_string(in.size(0)) + " channels, expected " +
                        std::to_string(numbers) + " as subtrahend or divisor have numbers");
      }
    }
    at::Tensor out = at::empty_like(in);
    const int64_t parts = channel_wise ? in.size(0) : 1,
                  count = in.numel() / std::max<int64_t>(parts, 1);
    for (int64_t part = 0; part < parts; ++part) {
      const float* from = in.const_data_ptr<float>() + part * count;
      float* to = out.mutable_data_ptr<float>() + part * count;
      const auto channel = static_cast<std::size_t>(part);
      const auto [mean, scale] = numbers_of(moments.empty() ? nullptr : &moments[channel], channel);
      for (int64_t i = 0; i < count; ++i) {
        const float value = (from[i] - mean) * scale;
        to[i] = nonzero && from[i] == 0 ? 0 : value;
      }
    }
    return out;
  }
  Numbers numbers_of(const Moments* moments, std::size_t channel) const {
    if (moments != nullptr && moments->count == 0) return {0, 1};
    const double mean = subtrahend.empty() ? moments->mean : given(subtrahend, channel);
    const double deviation = divisor.empty() ? moments->deviation() : given(divisor, channel);
    return {static_cast<float>(mean), static_cast<float>(1 / (deviation == 0 ? 1 : deviation))};
  }
  static double given(const std::vector<double>& numbers, std::size_t channel) {
    return numbers[numbers.size() == 1 ? 0 : channel];
  }
};
CYTRA_REGISTER(Transform, PerKey<NormalizeIntensityd>, "NormalizeIntensityd");

}  // namespace
}  // namespace cytra::data
