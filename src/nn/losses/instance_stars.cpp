// StarDistLoss: of the objects' probability and distances along rays. Source:
// stardist/models/base.py, prob_loss and masked_loss_mae.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/instance_target.h"

namespace cytra::nn {
namespace {

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
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const override {
    expect_instance_target("StarDistLoss", logits, target);
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
