#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Throws: DataError with the remedy where a norm of that name has one value for each mean of `x`,
/// whose variance is unknown. Source: torch.nn.functional's checks.
void expect_several(const at::Tensor& x, int64_t values, const char* norm);

}  // namespace cytra::ops
