#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::data {

/// The q-th percentile of all values, q in 0..100, linear between neighbours. Source: monai's
/// percentile(): torch.quantile up to a million values, numpy.percentile beyond.
float percentile(const at::Tensor& image, double q);

}  // namespace cytra::data
