#include "data/transforms/intensity/percentile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ATen.h>

namespace cytra::data {
namespace {

/// The value at a fractional rank. `Real` is what the peer computes ranks and weights in: at a
/// million values a float rank is off by up to 1/32.
template <class Real>
float value_at(std::vector<float>& values, Real rank) {
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), below, values.end());
  const Real weight = rank - std::floor(rank);
  const Real low = *below;
  if (weight == 0) return *below;
  const Real high = *std::min_element(below + 1, values.end());
  return static_cast<float>(weight < Real(0.5) ? low + weight * (high - low)
                                               : high - (high - low) * (1 - weight));
}

}  // namespace

float percentile(const at::Tensor& image, double q) {
  constexpr std::size_t kLargest = 1000000;  // of torch.quantile in monai's percentile()
  const at::Tensor flat = image.contiguous();
  const float* data = flat.const_data_ptr<float>();
  std::vector<float> values(data, data + flat.numel());
  const auto is_nan = [](float value) { return std::isnan(value); };
  if (values.empty() || std::any_of(values.begin(), values.end(), is_nan))
    return std::numeric_limits<float>::quiet_NaN();
  const std::size_t last = values.size() - 1;
  if (values.size() > kLargest) return value_at(values, q / 100 * static_cast<double>(last));
  return value_at(values, static_cast<float>(q / 100) * static_cast<float>(last));
}

}  // namespace cytra::data
