// DeepSupervisionLoss: a loss at every output of a network, the finest first. Arguments and values
// of monai.losses.DeepSupervisionLoss. (Without it the weights are nnU-Net's: Loss::of_levels.)
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/loss.h"

namespace cytra::nn {
namespace {

class DeepSupervisionLoss final : public Loss {
 public:
  struct Options : LossOptions {
    config::Node loss;
    std::string weight_mode = "exp";
    std::vector<double> weights;
    void visit(auto& v) {
      v("loss", loss, "the loss of each output", config::component<Loss>());
      v("weight_mode",
        weight_mode,
        "exp: 1, 1/2, 1/4 ... from 1/16 on the same; two: 1, 1/2, 1/2 ...; same: 1",
        {"exp", "same", "two"});
      v("weights",
        weights,
        "weight of each output, in place of weight_mode for as many outputs as there are weights",
        0,
        1e9);
      LossOptions::visit(v);
    }
  };
  explicit DeepSupervisionLoss(const Options& options)
      : Loss(options, /*takes_short=*/true), options_(options), loss_(make<Loss>(options.loss)) {}

  at::Tensor of_levels(const std::vector<at::Tensor>& levels,
                       const at::Tensor& target) const override {
    std::vector<double> weights = options_.weights;
    if (weights.size() < levels.size()) {
      weights.assign(levels.size(), options_.weight_mode == "two" ? 0.5 : 1);
      weights[0] = 1;
      for (std::size_t l = 1; options_.weight_mode == "exp" && l < weights.size(); ++l)
        weights[l] = std::max(weights[l - 1] / 2, 0.0625);
    }
    return weighted_sum(levels, target, weights);
  }

 protected:
  at::Tensor compute(const LossInput& in) const override {
    return (*loss_)(in.logits, in.target, in.mask);
  }

 private:
  Options options_;
  std::shared_ptr<Loss> loss_;
};
CYTRA_REGISTER(Loss, DeepSupervisionLoss, "DeepSupervisionLoss");

}  // namespace
}  // namespace cytra::nn
