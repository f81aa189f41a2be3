#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// softmax(query key^T / sqrt(e) + down + across) value, of all tokens of squares: s rows of s, E
/// = heads e features. The added terms are never stored as a whole. On a CPU, without gradients:
/// has_token_kernels() of ops/tokens/tokens.h. Shape: qkv (N,s s,3 E), down and across (N,heads,s
/// s,s): what the row and the column of a key add for a query
/// -> (N,s s,E).
at::Tensor attend_square(const at::Tensor& qkv, const at::Tensor& down, const at::Tensor& across);

}  // namespace cytra::ops
