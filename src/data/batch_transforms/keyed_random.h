#pragma once
// Draws from Rng streams on the device: the numbers are those of Rng on the host.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/rng.h"

namespace cytra::data {

/// Copies a few numbers from the host, without waiting for the device.
at::Tensor to_device(const at::Tensor& values, const at::Device& device);

/// Shape: (spans, count) float64 in [0, 1): Rng::uniform().
at::Tensor uniforms(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device);
/// Shape: (spans, count) float64: Rng::normal(); each takes two draws.
at::Tensor normals(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device);
/// Normal values, using both of each pair of draws: (spans, count), of count draws, count even.
at::Tensor normal_pairs(const std::vector<Rng::Span>& spans,
                        int64_t count,
                        const at::Device& device);

}  // namespace cytra::data
