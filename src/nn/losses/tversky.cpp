// TverskyLoss: overlap with a weight of its own for each kind of error. Arguments and values of
// monai.losses.TverskyLoss. FocalTverskyLoss: a power of it that weights hard classes more; the
// paper's alpha, for false negatives, is beta here. Sources: arXiv:1706.05721,
// arXiv:1810.07842.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/dice.h"

namespace cytra::nn {
namespace {

struct TverskyLoss : OverlapOptions {
  double alpha = 0.5, beta = 0.5;
  void visit(auto& v) {
    OverlapOptions::visit(v);
    v("alpha", alpha, "weight of false positives", 0, 1e9);
    v("beta", beta, "weight of false negatives", 0, 1e9);
  }
  at::Tensor compute(const LossInput& in) const { return reduced(of_classes(in)); }
  /// Before the reduction: (N or 1,K).
  at::Tensor of_classes(const LossInput& in) const {
    const Overlap sums = overlap(in);
    const at::Tensor errors =
        alpha * (sums.prediction - sums.both) + beta * (sums.truth - sums.both);
    return 1 - (sums.both + smooth_nr) / (sums.both + errors + smooth_dr);
  }
};
CYTRA_REGISTER(Loss, LossOf<TverskyLoss>, "TverskyLoss");

struct FocalTverskyLoss : TverskyLoss {
  double gamma = 4.0 / 3;
  FocalTverskyLoss() {
    alpha = 0.3;
    beta = 0.7;
  }
  void visit(auto& v) {
    TverskyLoss::visit(v);
    v("gamma", gamma, "the loss of a class is Tversky's to the power 1 / gamma", 0.1, 10);
  }
  at::Tensor compute(const LossInput& in) const {
    // A power below 1 has no slope at 0.
    return reduced(of_classes(in).clamp_min(1e-6).pow(1 / gamma));
  }
};
CYTRA_REGISTER(Loss, LossOf<FocalTverskyLoss>, "FocalTverskyLoss");

}  // namespace
}  // namespace cytra::nn
