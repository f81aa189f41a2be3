// Part of io/events/event_file.h: TensorBoard's histograms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "io/events/event_file.h"

namespace cytra::io {
namespace {

/// The edges of the buckets, ascending: bucket i is [edge i, edge i + 1).
const std::vector<double>& edges() {
  static const std::vector<double> all = [] {
    std::vector<double> positive;
    for (double edge = 1e-12; edge < 1e20; edge *= 1.1) positive.push_back(edge);
    std::vector<double> both;
    for (auto edge = positive.rbegin(); edge != positive.rend(); ++edge) both.push_back(-*edge);
    both.push_back(0);
    both.insert(both.end(), positive.begin(), positive.end());
    return both;
  }();
  return all;
}

}  // namespace

Histogram histogram_of(const float* values, std::size_t count) {
  const std::vector<double>& edge = edges();
  std::vector<double> counts(edge.size() - 1);
  Histogram histogram;
  histogram.min = std::numeric_limits<double>::infinity();
  histogram.max = -histogram.min;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) continue;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    histogram.sum += value;
    histogram.sum_squares += value * value;
    histogram.count += 1;
    if (value < edge.front() || value > edge.back()) continue;
    const auto next = std::upper_bound(edge.begin(), edge.end() - 1, value);  // numpy: the last
    counts[static_cast<std::size_t>(next - edge.begin()) - 1] += 1;           // bucket has its end
  }
  const auto is_taken = [](double number) { return number > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), is_taken) - counts.begin();
  if (first == static_cast<std::ptrdiff_t>(counts.size())) {
    if (histogram.count == 0) histogram.min = histogram.max = 0;
    return histogram;
  }
  const auto last = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_taken);
  // An empty bucket on the left shows where the first one begins.
  histogram.counts.push_back(0);
  histogram.counts.insert(histogram.counts.end(), counts.begin() + first, counts.begin() + last);
  histogram.limits.assign(edge.begin() + first, edge.begin() + last + 1);
  return histogram;
}

}  // namespace cytra::io
