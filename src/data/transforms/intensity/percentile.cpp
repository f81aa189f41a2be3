#include "data/transforms/intensity/percentile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <ATen/ATen.h>

namespace cytra::data {
namespace {

/// A fractional rank among `count` values. Up to a million values, MONAI computes ranks and
/// weights as floats, so that a rank is wrong by up to 1/32.
struct Rank {
  Rank(double q, std::size_t count) : is_double(count > kLargest) {
    const std::size_t last = count - 1;
    rank = is_double ? q / 100 * static_cast<double>(last)
                     : static_cast<float>(q / 100) * static_cast<float>(last);
  }
  std::size_t below() const { return static_cast<std::size_t>(rank); }
  bool is_whole() const { return rank == std::floor(rank); }
  float between(float low, float high) const {
    return is_double ? between<double>(low, high) : between<float>(low, high);
  }

 private:
  static constexpr std::size_t kLargest = 1000000;  // of torch.quantile in monai's percentile()
  template <class Real>
  float between(Real low, Real high) const {
    const Real weight = static_cast<Real>(rank) - std::floor(static_cast<Real>(rank));
    return static_cast<float>(weight < Real(0.5) ? low + weight * (high - low)
                                                 : high - (high - low) * (1 - weight));
  }
  bool is_double;
  double rank;  // computed as a float, where MONAI does so
};

/// Counts the keys of one part of an image: by their upper half, then those that share an upper
/// half with a wanted one by their lower half.
class RankedKeys {
 public:
  void count_upper(const float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) ++upper_[ordered_key(values[i]) >> 16U];
    total_ += static_cast<std::size_t>(count);
  }
  std::size_t total() const { return total_; }
  void want(std::size_t rank) { lower_.try_emplace(find(upper_, rank).first); }
  void count_lower(const float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = ordered_key(values[i]);
      if (const auto found = lower_.find(key >> 16U); found != lower_.end())
        ++found->second[key & 0xFFFFU];
    }
  }
  float at(std::size_t rank) const {
    const auto [upper, rest] = find(upper_, rank);
    return value_of_key(upper << 16U | find(lower_.at(upper), rest).first);
  }

 private:
  struct Counts : std::vector<std::size_t> {
    Counts() : std::vector<std::size_t>(65536) {}
  };
  static std::pair<uint32_t, std::size_t> find(const Counts& counts, std::size_t rank) {
    uint32_t key = 0;
    for (; rank >= counts[key]; ++key) rank -= counts[key];
    return {key, rank};
  }
  Counts upper_;
  std::map<uint32_t, Counts> lower_;
  std::size_t total_ = 0;
};

}  // namespace

uint32_t ordered_key(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

float value_of_key(uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000U) != 0 ? key & 0x7FFFFFFFU : ~key);
}

float percentile(const at::Tensor& image, double q) {
  const at::Tensor flat = image.contiguous();
  const float* data = flat.const_data_ptr<float>();
  std::vector<float> values(data, data + flat.numel());
  const auto is_nan = [](float value) { return std::isnan(value); };
  if (values.empty() || std::ranges::any_of(values, is_nan))
    return std::numeric_limits<float>::quiet_NaN();
  const Rank rank(q, values.size());
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(rank.below());
  std::nth_element(values.begin(), below, values.end());
  if (rank.is_whole()) return *below;
  return rank.between(*below, *std::min_element(below + 1, values.end()));
}

std::vector<std::vector<float>> percentiles(const Scan& scan,
                                            bool channel_wise,
                                            const std::vector<double>& q) {
  std::vector<RankedKeys> parts;
  const auto for_parts = [&](const at::Tensor& rows, auto count) {
    const at::Tensor dense = rows.contiguous();
    const int64_t number = channel_wise ? dense.size(0) : 1, size = dense.numel() / number;
    parts.resize(static_cast<std::size_t>(number));
    for (int64_t part = 0; part < number; ++part) {
      (parts[static_cast<std::size_t>(part)].*count)(dense.const_data_ptr<float>() + part * size,
                                                     size);
    }
  };
  scan([&](const at::Tensor& rows) { for_parts(rows, &RankedKeys::count_upper); });
  for (RankedKeys& part : parts) {
    for (const double one : q) {
      const Rank rank(one, part.total());
      part.want(rank.below());
      if (!rank.is_whole()) part.want(rank.below() + 1);
    }
  }
  scan([&](const at::Tensor& rows) { for_parts(rows, &RankedKeys::count_lower); });
  std::vector<std::vector<float>> found;
  for (const RankedKeys& part : parts) {
    found.emplace_back();
    for (const double one : q) {
      const Rank rank(one, part.total());
      const float below = part.at(rank.below());
      found.back().push_back(rank.is_whole() ? below
                                             : rank.between(below, part.at(rank.below() + 1)));
    }
  }
  return found;
}

}  // namespace cytra::data
