// The losses of instances. CellposeLoss: of flows and the objects' logit; source:
// cellpose/train.py, _loss_fn_seg. StarDistLoss: of the objects' probability and distances along
// rays; source: stardist/models/base.py, prob_loss and masked_loss_mae.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"

namespace cytra::nn {
namespace {

/// Throws: DataError unless the target has the shape of the logits.
void expect_instance_target(const char* loss, const LossInput& in) {
  const auto& [logits, target, mask] = in;
  if (target.sizes() == logits.sizes()) return;
  throw DataError("{}: a target of ({}), the model gives ({}); InstanceTask makes it",
                  loss,
                  fmt::join(target.sizes(), ","),
                  fmt::join(logits.sizes(), ","));
}

/// 1 where voxels count, (N,1,...): `mask` allows it, and the target's probability is not -1, which
/// stands for "not known".
at::Tensor counts_of(const at::Tensor& probability, const at::Tensor& mask) {
  const at::Tensor counts = probability.ge(0).to(probability.scalar_type());
  return mask.defined() ? counts * mask : counts;
}

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
  at::Tensor compute(const LossInput& in) const override {
    expect_instance_target("CellposeLoss", in);
    const auto& [logits, target, mask] = in;
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

/// Binary cross-entropy of the probability, plus the mean absolute error of the distances, weighted
/// by the probability, and in the background a little of the distances themselves.
/// Shape: logits and target (N,1+rays,...): the probability, then the distances.
class StarDistLoss final : public Loss {
 public:
  struct Options {
    static constexpr const char* kPurpose = kStars.what;
    double dist_weight = 0.2, background_reg = 1e-4;
    void visit(auto& v) {
      v("dist_weight", dist_weight, "weight of the distances; the probability has 1", 0, 1e9);
      v("background_reg", background_reg, "weight of the distances in the background", 0, 1e9);
    }
  };
  explicit StarDistLoss(const Options& options) : options_(options) {}

 protected:
  at::Tensor compute(const LossInput& in) const override {
    expect_instance_target("StarDistLoss", in);
    const auto& [logits, target, mask] = in;
    const int64_t rays = logits.size(1) - 1;
    const at::Tensor probability = target.narrow(1, 0, 1).clamp_min(0);
    const at::Tensor counts = counts_of(target.narrow(1, 0, 1), mask);
    const at::Tensor distances = logits.narrow(1, 1, rays);
    const at::Tensor entropy =
        at::binary_cross_entropy_with_logits(logits.narrow(1, 0, 1), probability, {}, {}, 0);
    const at::Tensor error = (distances - target.narrow(1, 1, rays)).abs().mean(1, true);
    const at::Tensor all = counts.sum().clamp_min(1);
    const auto mean = [&](const at::Tensor& values) { return (values * counts).sum() / all; };
    return mean(entropy) +
           options_.dist_weight *
               (mean(probability * error) / (mean(probability) + 1e-7) +
                options_.background_reg * mean((1 - probability) * distances.abs().mean(1, true)));
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Loss, StarDistLoss, "StarDistLoss");

}  // namespace
}  // namespace cytra::nn
