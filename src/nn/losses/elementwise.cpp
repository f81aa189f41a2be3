// Losses of differences, voxel by voxel: MSELoss, L1Loss, HuberLoss, SmoothL1Loss. Arguments and
// values of torch.nn's. With a mask the mean is over the voxels that count: the masked MSE of
// autoencoders.
#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "config/registry.h"
#include "nn/losses/channels.h"

namespace cytra::nn {
namespace {

struct MSELoss : ReducedOptions {
  static constexpr const char* kPurpose = kValues.what;
  at::Tensor compute(const LossInput& in) const {
    return reduced((in.logits - truth_of(in)).square(), in.mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<MSELoss>, "MSELoss");

struct L1Loss : ReducedOptions {
  static constexpr const char* kPurpose = kValues.what;
  at::Tensor compute(const LossInput& in) const {
    return reduced((in.logits - truth_of(in)).abs(), in.mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<L1Loss>, "L1Loss");

struct HuberLoss : ReducedOptions {
  static constexpr const char* kPurpose = kValues.what;
  double delta = 1;
  void visit(auto& v) {
    v("delta", delta, "difference from which on it grows linearly", 1e-9, 1e9);
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const LossInput& in) const {
    return reduced(at::huber_loss(in.logits, truth_of(in), at::Reduction::None, delta), in.mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<HuberLoss>, "HuberLoss");

struct SmoothL1Loss : ReducedOptions {
  static constexpr const char* kPurpose = kValues.what;
  double beta = 1;
  void visit(auto& v) {
    v("beta", beta, "difference from which on it grows linearly, with slope 1; 0: L1", 0, 1e9);
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const LossInput& in) const {
    return reduced(at::smooth_l1_loss(in.logits, truth_of(in), at::Reduction::None, beta), in.mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<SmoothL1Loss>, "SmoothL1Loss");

}  // namespace
}  // namespace cytra::nn
