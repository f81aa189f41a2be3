#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// Keys that every loss takes: its Options are derived from them, and its constructor hands them to
/// Loss.
struct LossOptions {
  std::optional<int64_t> ignore_index;
  template <class V>
  void visit(V& v) {
    v("ignore_index", ignore_index, "voxels whose target is this do not count; null: all count");
  }
};

/// A scalar to minimise. Registered under its class name in MONAI, or in torch.nn.
class Loss {
 public:
  static constexpr const char* kKind = "loss";
  explicit Loss(const LossOptions& options = {}) : ignore_index_(options.ignore_index) {}
  virtual ~Loss() = default;
  /// logits (N,K,[D,]H,W) float, target (N,1 or K,[D,]H,W), mask (N,1,[D,]H,W) of 0 and 1: voxels
  /// that count; undefined: all -> scalar. Voxels with the target ignore_index do not count either.
  at::Tensor operator()(const at::Tensor& logits,
                        const at::Tensor& target,
                        const at::Tensor& mask = {}) const;
  /// Of the outputs of deep supervision, the finest first, against one target, which is sampled
  /// down to each: by default nnU-Net's weights, half of it for each level, none for the last of
  /// three or more, and 1 in all. Source: nnunetv2.training.loss.deep_supervision.DeepSupervisionWrapper.
  virtual at::Tensor of_levels(const std::vector<at::Tensor>& levels,
                               const at::Tensor& target) const;

 protected:
  /// The same where every voxel's target is one; `mask` has the type of the logits, or is
  /// undefined.
  virtual at::Tensor compute(const at::Tensor& logits,
                             const at::Tensor& target,
                             const at::Tensor& mask) const = 0;
  /// Of the first outputs, as many as there are weights.
  at::Tensor weighted_sum(const std::vector<at::Tensor>& levels,
                          const at::Tensor& target,
                          const std::vector<double>& weights) const;

 private:
  std::optional<int64_t> ignore_index_;
};

/// The Loss of a T that has options (derived from LossOptions) and `compute`, as above, of them:
/// CYTRA_REGISTER(Loss, LossOf<DiceLoss>, "DiceLoss").
template <class T>
class LossOf final : public Loss {
 public:
  using Options = T;
  explicit LossOf(const T& options) : Loss(options), options_(options) {}

 protected:
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const override {
    return options_.compute(logits, target, mask);
  }

 private:
  T options_;
};

}  // namespace cytra::nn
