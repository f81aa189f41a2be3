#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Keeps what convolutions prepare of the weights of a network that is only run, as long as it
/// lives. The weights must neither change nor be freed before.
class ConstantWeights {
 public:
  /// Makes convolutions on this thread use `weights` while it lives.
  class Scope {
   public:
    explicit Scope(ConstantWeights& weights);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ConstantWeights* before_;
  };
  /// The ones that this thread uses; null: none.
  static ConstantWeights* active();

  /// What `prepare` makes of a weight for so many points, made once. Thread: any.
  at::Tensor get(const at::Tensor& weight,
                 int64_t points,
                 const std::function<at::Tensor()>& prepare);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, int64_t>, at::Tensor> prepared_;
};

}  // namespace cytra::ops
