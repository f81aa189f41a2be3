#include "inference/postprocess/thresholds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::inference {
namespace {

constexpr std::size_t kBins = 256;
using Bins = std::array<float, kBins>;

/// A histogram like numpy.histogram of float32: edges and centres are float32, too.
struct Histogram {
  Bins counts{}, centres{};
  std::array<int64_t, kBins> exact{};
};

Histogram histogram_of(const float* values, int64_t count, float low, float high) {
  std::array<float, kBins + 1> edges{};
  const float step = (high - low) / static_cast<float>(kBins);
  for (std::size_t i = 0; i < kBins; ++i) edges[i] = static_cast<float>(i) * step + low;
  edges[kBins] = high;
  Histogram histogram;
  for (int64_t i = 0; i < count; ++i) {
    const float place = (values[i] - low) / (high - low) * static_cast<float>(kBins);
    auto bin = std::min(static_cast<std::size_t>(place), kBins - 1);
    if (values[i] < edges[bin])
      --bin;
    else if (bin + 1 < kBins && values[i] >= edges[bin + 1])
      ++bin;
    ++histogram.exact[bin];
  }
  for (std::size_t i = 0; i < kBins; ++i) {
    histogram.counts[i] = static_cast<float>(histogram.exact[i]);
    histogram.centres[i] = (edges[i] + edges[i + 1]) / 2;
  }
  return histogram;
}

Bins sums_of(Bins values) {
  std::partial_sum(values.begin(), values.end(), values.begin());
  return values;
}
Bins sums_from_end(Bins values) {
  std::partial_sum(values.rbegin(), values.rend(), values.rbegin());
  return values;
}
Bins each(const auto& of) {
  Bins result;
  for (std::size_t i = 0; i < kBins; ++i) result[i] = of(i);
  return result;
}
/// The index of the first largest of `count` values of of().
std::size_t first_largest(std::size_t count, const auto& of) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (of(i) > of(best)) best = i;
  }
  return best;
}

double otsu(const Histogram& of) {
  const Bins below = sums_of(of.counts), above = sums_from_end(of.counts);
  const Bins mass = each([&](std::size_t i) { return of.counts[i] * of.centres[i]; });
  const Bins mass_below = sums_of(mass), mass_above = sums_from_end(mass);
  return of.centres[first_largest(kBins - 1, [&](std::size_t i) {
    const float apart = mass_below[i] / below[i] - mass_above[i + 1] / above[i + 1];
    return below[i] * above[i + 1] * (apart * apart);
  })];
}

double yen(const Histogram& of) {
  const auto total = std::accumulate(of.exact.begin(), of.exact.end(), int64_t{0});
  const Bins share = each([&](std::size_t i) { return of.counts[i] / static_cast<float>(total); });
  const Bins square = each([&](std::size_t i) { return share[i] * share[i]; });
  const Bins below = sums_of(share), square_below = sums_of(square),
             square_above = sums_from_end(square);
  return of.centres[first_largest(kBins - 1, [&](std::size_t i) {
    const float spread = below[i] * (1 - below[i]);
    return std::log(1 / (square_below[i] * square_above[i + 1]) * (spread * spread));
  })];
}

double isodata(const Histogram& of) {
  const Bins below = sums_of(of.counts),
             mass = sums_of(each([&](std::size_t i) { return of.counts[i] * of.centres[i]; }));
  const float width = of.centres[1] - of.centres[0];
  for (std::size_t i = 0; i + 1 < kBins; ++i) {
    const float lower = mass[i] / below[i],
                higher = (mass.back() - mass[i]) / (below.back() - below[i]);
    const float distance = (lower + higher) / 2 - of.centres[i];
    if (distance >= 0 && distance < width) return of.centres[i];
  }
  throw DataError("no threshold that is the mean of the means below and above");
}

double triangle(const Histogram& of) {
  auto counts = of.exact;
  const auto peak_at = [&] { return std::ranges::max_element(counts) - counts.begin(); };
  const auto is_used = [](int64_t count) { return count != 0; };
  std::ptrdiff_t peak = peak_at();
  const std::ptrdiff_t last = kBins - 1,
                       low = std::ranges::find_if(counts, is_used) - counts.begin(),
                       high = last - (std::find_if(counts.rbegin(), counts.rend(), is_used) -
                                      counts.rbegin());
  const bool is_flipped = peak - low < high - peak;
  if (is_flipped) {
    std::ranges::reverse(counts);
    peak = last - peak;
  }
  const std::ptrdiff_t start = is_flipped ? last - high : low;
  const auto width = static_cast<double>(peak - start);
  const auto top = static_cast<double>(counts[static_cast<std::size_t>(peak)]);
  const double norm = std::sqrt(top * top + width * width);
  const std::size_t level = first_largest(static_cast<std::size_t>(peak - start), [&](auto x) {
    return top / norm * static_cast<double>(x) -
           width / norm * static_cast<double>(counts[static_cast<std::size_t>(start) + x]);
  });
  const std::size_t found = static_cast<std::size_t>(start) + level;
  return of.centres[is_flipped ? kBins - 1 - found : found];
}

std::vector<std::size_t> peaks_in(const Bins& counts) {
  std::vector<std::size_t> peaks;
  bool rises = true;
  for (std::size_t i = 0; i + 1 < kBins; ++i) {
    if (rises && counts[i + 1] < counts[i]) {
      rises = false;
      peaks.push_back(i);
    } else if (counts[i + 1] > counts[i]) {
      rises = true;
    }
  }
  return peaks;
}

/// The lowest place between two peaks; smoothes until two are left.
double minimum(const Histogram& of) {
  Bins counts = of.counts;
  for (int pass = 0; pass < 10'000; ++pass) {
    const Bins last = counts;
    counts = each([&](std::size_t i) {
      const double before = last[i == 0 ? 0 : i - 1], after = last[std::min(i + 1, kBins - 1)];
      return static_cast<float>((before + static_cast<double>(last[i]) + after) / 3);
    });
    const std::vector<std::size_t> peaks = peaks_in(counts);
    if (peaks.size() >= 3) continue;
    if (peaks.size() < 2) break;
    const auto between =
        std::min_element(counts.begin() + static_cast<std::ptrdiff_t>(peaks[0]),
                         counts.begin() + static_cast<std::ptrdiff_t>(peaks[1]) + 1);
    return of.centres[static_cast<std::size_t>(between - counts.begin())];
  }
  throw DataError("the histogram does not have two peaks, as minimum expects");
}

/// The threshold of minimum cross entropy, by its fixed point: the means of both parts come from
/// sorted values and their sums.
double li(const at::Tensor& values, float low) {
  const at::Tensor sorted = std::get<0>(values.flatten().sub(low).sort());
  const at::Tensor sums = sorted.to(at::kDouble).cumsum(0);
  const float* value = sorted.const_data_ptr<float>();
  const double* sum = sums.const_data_ptr<double>();
  const int64_t count = sorted.numel();
  double tolerance = HUGE_VAL;
  for (int64_t i = 1; i < count; ++i) {
    if (value[i] > value[i - 1])
      tolerance = std::min(tolerance, static_cast<double>(value[i] - value[i - 1]) / 2);
  }
  double next = sum[count - 1] / static_cast<double>(count), now = -2 * tolerance;
  while (std::abs(next - now) > tolerance) {
    now = next;
    const int64_t back = std::upper_bound(value, value + count, static_cast<float>(now)) - value;
    if (back == 0 || back == count) break;
    const double mean_back = sum[back - 1] / static_cast<double>(back),
                 mean_fore = (sum[count - 1] - sum[back - 1]) / static_cast<double>(count - back);
    if (mean_back == 0) break;
    next = (mean_back - mean_fore) / (std::log(mean_back) - std::log(mean_fore));
  }
  return next + static_cast<double>(low);
}

using FromHistogram = double (*)(const Histogram&);
const std::map<std::string, FromHistogram>& from_histogram() {
  static const std::map<std::string, FromHistogram> methods{{"otsu", otsu},
                                                            {"triangle", triangle},
                                                            {"yen", yen},
                                                            {"isodata", isodata},
                                                            {"minimum", minimum}};
  return methods;
}

}  // namespace

const std::vector<std::string>& threshold_methods() {
  static const std::vector<std::string> methods{
      "otsu", "triangle", "li", "yen", "isodata", "mean", "minimum"};
  return methods;
}

double find_threshold(const Tensor& values, const std::string& method) {
  if (values.numel() == 0) throw DataError("an empty image has no threshold");
  const at::Tensor image = values.to(at::kCPU, at::kFloat).contiguous();
  const auto [lowest, highest] = image.aminmax();
  const float low = lowest.item<float>(), high = highest.item<float>();
  if (!std::isfinite(low) || !std::isfinite(high))
    throw DataError("values that are not finite numbers, which no threshold can separate");
  if (low == high) return low;
  if (method == "mean") return image.to(at::kDouble).mean().item<double>();
  if (method == "li") return li(image, low);
  return from_histogram().at(method)(
      histogram_of(image.const_data_ptr<float>(), image.numel(), low, high));
}

}  // namespace cytra::inference
