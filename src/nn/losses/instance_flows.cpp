// CellposeLoss: of flows and the objects' logit. Source: cellpose/train.py, _loss_fn_seg.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/instance_target.h"

namespace cytra::nn {
namespace {

/// Half the mean square error of the flows (networks learn five times the flows), plus binary
/// cross-entropy. Shape: logits and target (N,D+1,...): flows, then the object.
class CellposeLoss final : public Loss {
 public:
  struct Options {
    static constexpr const char* kPurpose = kFlows.what;
    void visit(auto&) {}
  };
  explicit CellposeLoss(const Options&) {}

 protected:
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const override {
    expect_instance_target("CellposeLoss", logits, target);
    const int64_t dims = logits.size(1) - 1;
    const at::Tensor object = target.narrow(1, dims, 1);
    const at::Tensor counts = counts_of(object, mask);
    const at::Tensor error =
        (logits.narrow(1, 0, dims) - 5 * target.narrow(1, 0, dims)).square().mean(1, true);
    const at::Tensor entropy = at::binary_cross_entropy_with_logits(
        logits.narrow(1, dims, 1), object.clamp_min(0), {}, {}, 0);
    return ((error / 2 + entropy) * counts).sum() / counts.sum().clamp_min(1);
  }
};
CYTRA_REGISTER(Loss, CellposeLoss, "CellposeLoss");

}  // namespace
}  // namespace cytra::nn
