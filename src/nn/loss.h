#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// Keys that every loss takes: its Options are derived from them, and its constructor hands them to
/// Loss.
struct LossOptions {
  static constexpr bool kTakesShort = false;  // bfloat16 and float16 logits as they are
  std::optional<int64_t> ignore_index;
  void visit(auto& v) {
    v("ignore_index", ignore_index, "voxels whose target is this do not count; null: all count");
  }
};

/// What losses compare, and which losses do. `static constexpr const char* kPurpose = kMasks.what`
/// in a loss's Options keeps it from tasks that learn something else; one without suits all.
struct Compared {
  const char *what, *losses;
};
inline constexpr Compared kMasks{"masks or classes",
                                 "DiceCELoss (loss=dice_ce) or another of masks (docs/losses.md)"};
inline constexpr Compared kValues{"values",
                                  "MSELoss (loss=mse), L1Loss (l1), HuberLoss (huber), "
                                  "SmoothL1Loss (smooth_l1) or SSIMLoss (ssim)"};
inline constexpr Compared kFlows{"flows (task.method=flows)",
                                 "task.loss=null, which is CellposeLoss"};
inline constexpr Compared kStars{"stars (task.method=stars)",
                                 "task.loss=null, which is StarDistLoss"};

/// What a loss compares: logits (N,K,[D,]H,W), target (N,1 or K,[D,]H,W), mask (N,1,[D,]H,W) of 0
/// and 1: voxels that count; undefined: all.
struct LossInput {
  at::Tensor logits, target, mask;
};

/// A scalar to minimise. Registered under its class name in MONAI, or in torch.nn.
class Loss {
 public:
  static constexpr const char* kKind = "loss";
  explicit Loss(const LossOptions& options = {}, bool takes_short = false)
      : ignore_index_(options.ignore_index), takes_short_(takes_short) {}
  virtual ~Loss() = default;
  /// LossInput of any floating type -> scalar, computed in float32 at least. Voxels with the target
  /// ignore_index do not count either.
  at::Tensor operator()(const at::Tensor& logits,
                        const at::Tensor& target,
                        const at::Tensor& mask = {}) const;
  /// The loss of the outputs of deep supervision, the finest first, against one target, which is
  /// sampled down to each. By default with nnU-Net's weights: each level has half the weight of
  /// the finer one, the last of three or more has none, and their sum is 1. Source:
  /// nnunetv2.training.loss.deep_supervision.DeepSupervisionWrapper.
  virtual at::Tensor of_levels(const std::vector<at::Tensor>& levels,
                               const at::Tensor& target) const;

 protected:
  /// Computes the loss; targets that were ignore_index are 0 here, and `mask` leaves them out. The
  /// logits are float32 at least, unless the loss takes short ones; so is `mask`, or undefined.
  virtual at::Tensor compute(const LossInput& in) const = 0;
  /// The weighted sum of the losses of the first outputs, as many as there are weights.
  at::Tensor weighted_sum(const std::vector<at::Tensor>& levels,
                          const at::Tensor& target,
                          const std::vector<double>& weights) const;

 private:
  std::optional<int64_t> ignore_index_;
  bool takes_short_;
};

/// The logits in the type that losses compute in: float32, or float64 where they have it.
at::Tensor at_least_float(const at::Tensor& logits);

/// The Loss of a T that has options (derived from LossOptions) and `compute`, as above, of them:
/// CYTRA_REGISTER(Loss, LossOf<DiceLoss>, "DiceLoss").
template <class T>
class LossOf final : public Loss {
 public:
  using Options = T;
  explicit LossOf(const T& options) : Loss(options, T::kTakesShort), options_(options) {}

 protected:
  at::Tensor compute(const LossInput& in) const override { return options_.compute(in); }

 private:
  T options_;
};

}  // namespace cytra::nn
