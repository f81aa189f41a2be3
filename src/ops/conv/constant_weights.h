#pragma once
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "base/memory.h"
#include "ops/conv/conv.h"
#include "ops/prepared_parameters.h"

namespace cytra::ops {

/// Keeps what convolutions prepare of the parameters of a network that is only run, as long as it
/// lives and memory is not spared (base/memory.h). What is prepared of other weights, which a
/// network computes or which are views of a parameter, is not kept.
class ConstantWeights {
 public:
  /// Makes convolutions on this thread use `weights` while it lives.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(ConstantWeights& weights);
    ~Scope();
    Scope& operator=(Scope&&) = delete;

   private:
    ConstantWeights* before_;
  };
  /// The ones that keep what this thread prepares of a convolution's weight; null: none do.
  static ConstantWeights* active(const at::Tensor& weight, const ConvOptions& options);

  /// What `prepare` makes of a parameter for so many points. Thread: any.
  at::Tensor get(const at::Tensor& parameter,
                 int64_t points,
                 const std::function<at::Tensor()>& prepare) {
    return is_memory_spared() ? prepare() : prepared_.get({parameter}, points, prepare);
  }

 private:
  PreparedParameters<at::Tensor> prepared_;
};

}  // namespace cytra::ops
