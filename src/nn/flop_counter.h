#pragma once
// FLOPs by torch.utils.flop_counter's formulas: convolutions, matrix products and attention.
#include <cstdint>
#include <functional>

namespace cytra::nn {

/// Floating-point operations; a multiply-add is 2.
struct Flops {
  int64_t forward = 0;
  /// The operations that autograd will compute for the gradients of inputs and weights.
  int64_t backward = 0;
  int64_t values = 0;  // read and written by the counted operations of the forward pass
  void add(const Flops& more);
};

/// Counts the FLOPs of each operation that this thread runs while it lives. One at a time in a
/// thread.
class FlopCounter {
 public:
  using OnFlops = std::function<void(const Flops& of_operation)>;
  explicit FlopCounter(OnFlops on_flops);
  ~FlopCounter();
  FlopCounter& operator=(FlopCounter&&) = delete;

 private:
  uint64_t handle_;
};

/// All of `work`.
Flops count_flops(const std::function<void()>& work);

}  // namespace cytra::nn
