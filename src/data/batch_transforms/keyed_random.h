#pragma once
// The draws of Rng streams, made on the device: the same numbers that Rng gives on the host.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/rng.h"

namespace cytra::data {

/// Small numbers from the host, without waiting for the device.
at::Tensor to_device(const at::Tensor& values, const at::Device& device);

/// Shape: (spans, count) float64 in [0, 1): Rng::uniform().
at::Tensor uniforms(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device);
/// Shape: (spans, count) float64: Rng::normal(); each takes two draws.
at::Tensor normals(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device);
/// The same, but both values of each pair of draws: (spans, count), of count draws, count even.
at::Tensor normal_pairs(const std::vector<Rng::Span>& spans,
                        int64_t count,
                        const at::Device& device);

}  // namespace cytra::data
