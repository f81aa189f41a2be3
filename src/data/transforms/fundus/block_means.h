#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cytra::data::fundus {

/// The means over blocks of `block` x `block` pixels; blocks at the lower and right border may
/// have fewer. On a CPU images of 8 and 16 bit are not converted: a photograph as float32 is four
/// times as large. Shape: (N,C,H,W) of any strides -> (N,C,ceil(H/block),ceil(W/block)) float32.
at::Tensor block_means(const at::Tensor& images, int64_t block);

}  // namespace cytra::data::fundus
