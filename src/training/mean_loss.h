#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::training {

/// The mean of losses over batches, which several processes may add up. Waits for no device until
/// it is asked for.
class MeanLoss {
 public:
  /// A scalar, on any device.
  void add(const at::Tensor& loss);
  /// The mean since the last take(), which starts it afresh; NaN: there was none.
  double mean() const;
  double take();
  /// (2) double: the sum and the number.
  const at::Tensor& sums() const { return sums_; }

 private:
  static at::Tensor none();
  at::Tensor sums_ = none();
};

}  // namespace cytra::training
