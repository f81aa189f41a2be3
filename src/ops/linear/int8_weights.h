#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/prepared_parameters.h"

struct LinearPackedParamsBase;

namespace cytra::ops {

/// The weights of a linear layer in 8 bits, with a scale for each output feature, as torch's
/// quantized::linear_dynamic takes them.
c10::intrusive_ptr<LinearPackedParamsBase> int8_packed(const at::Tensor& weight,
                                                       const at::Tensor& bias);

/// x weight^T + bias of the last dimension, as at::linear(); in the scope of Int8Weights by these.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The linear layers of a network that is only run, on a CPU, in 8 bits. Inputs are rounded to 8
/// bits by the range that they have in each call: nothing is measured before (torch's dynamic
/// quantization). Outputs are float32. Weights and biases are a network's parameters; what
/// else is given is held, too.
class Int8Weights {
 public:
  /// Makes linear() on this thread use `weights` while it lives.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(Int8Weights& weights);
    ~Scope();
    Scope& operator=(Scope&&) = delete;

   private:
    Int8Weights* before_;
  };
  Int8Weights();
  ~Int8Weights();

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
  /// The number of layers that it holds: of those that were run.
  int64_t count() const;

 private:
  using Packed = c10::intrusive_ptr<LinearPackedParamsBase>;
  PreparedParameters<Packed> packed_;
};

}  // namespace cytra::ops
