#pragma once
#include <cstdint>
#include <vector>

#include "data/sample/sample.h"

namespace cytra::data {

/// An integer key of a value that keeps the order: the smaller value has the smaller key.
uint32_t ordered_key(float value);
float value_of_key(uint32_t key);
/// The q-th percentile of all values, q in 0..100, linear between neighbours. Source: monai's
/// percentile(): torch.quantile up to a million values, numpy.percentile beyond.
float percentile(const at::Tensor& image, double q);

/// The percentiles of an image that is read by rows, in two scans: for each channel when
/// `channel_wise`, else for the whole image, one number for each of `q`.
std::vector<std::vector<float>> percentiles(const Scan& scan,
                                            bool channel_wise,
                                            const std::vector<double>& q);

}  // namespace cytra::data
