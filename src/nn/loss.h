#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// A scalar to minimise. Registered under its MONAI class name.
struct Loss {
  static constexpr const char* kKind = "loss";
  virtual ~Loss() = default;
  /// logits (N,K,[D,]H,W), target (N,1 or K,[D,]H,W) -> scalar.
  virtual at::Tensor operator()(const at::Tensor& logits, const at::Tensor& target) const = 0;
};

}  // namespace cytra::nn
