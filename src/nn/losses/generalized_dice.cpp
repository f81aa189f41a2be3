// GeneralizedDiceLoss: one Dice of all classes, weighted by how rare each is. Arguments and values
// of monai.losses.GeneralizedDiceLoss. Source: arXiv:1707.03237.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/dice.h"

namespace cytra::nn {
namespace {

struct GeneralizedDiceLoss : OverlapOptions {
  std::string w_type = "square";
  void visit(auto& v) {
    OverlapOptions::visit(v);
    v("w_type",
      w_type,
      "a class counts by 1 / size^2, 1 / size, or 1",
      {"square", "simple", "uniform"});
  }
  at::Tensor compute(const LossInput& in) const {
    const Overlap sums = overlap(in);
    at::Tensor weights = w_type == "square"   ? sums.truth.square().reciprocal()
                         : w_type == "simple" ? sums.truth.reciprocal()
                                              : at::ones_like(sums.truth);
    // An absent class has the weight of the rarest one that is present.
    const at::Tensor is_missing = weights.isinf();
    weights = weights.masked_fill(is_missing, 0);
    weights = at::where(is_missing, weights.amax(1, /*keepdim=*/true), weights);
    const at::Tensor both = (sums.both * weights).sum(1);
    const at::Tensor total = ((sums.prediction + sums.truth) * weights).sum(1);
    return reduced(1 - (2 * both + smooth_nr) / (total + smooth_dr));
  }
};
CYTRA_REGISTER(Loss, LossOf<GeneralizedDiceLoss>, "GeneralizedDiceLoss");

}  // namespace
}  // namespace cytra::nn
