#pragma once
// TensorBoard's histograms.
#include <cstddef>
#include <vector>

namespace cytra::io {

/// TensorBoard's HistogramProto: counts[i] values are in (limits[i - 1], limits[i]]; `count` in
/// all.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;  // of equal length; limits ascend
};

/// Counts the finite values in TensorBoard's buckets, whose limits grow by 10 % from 1e-12 to 1e20
/// on both sides of 0; values beyond them are only in `count` and the other totals. Source:
/// torch.utils.tensorboard's make_histogram with its default bins.
Histogram histogram_of(const float* values, std::size_t count);

}  // namespace cytra::io
