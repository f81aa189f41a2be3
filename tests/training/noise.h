#pragma once
#include <ATen/ATen.h>

#include "base/rng.h"

namespace cytra::test {

/// noise() of tests/golden/make_training.py.
inline at::Tensor noise(uint64_t seed, at::IntArrayRef sizes) {
  at::Tensor values = at::empty(sizes, at::kFloat);
  Rng rng(seed);
  float* out = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(rng.uniform());
  return values;
}

}  // namespace cytra::test
