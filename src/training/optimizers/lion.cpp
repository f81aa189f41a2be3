// Lion: steps by the sign of the momentum. Source: Chen et al. 2023, "Symbolic Discovery of
// Optimization Algorithms"; lion_pytorch.Lion.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Lion final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    std::vector<double> betas{0.9, 0.99};
    bool decoupled_weight_decay = false;
    Options() { lr = 1e-4; }
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("betas", betas, "share of the momentum in a step, and its decay, two numbers", 0, 1);
      v("decoupled_weight_decay",
        decoupled_weight_decay,
        "weight_decay is per step, whatever lr: it is divided by lr");
    }
    void check() const {
      OptimizerOptions::check(/*has_fused=*/false);
      if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
      if (decoupled_weight_decay && lr == 0)
        throw ConfigError("decoupled_weight_decay: expected lr above 0");
    }
  };
  explicit Lion(const Options& options)
      : Optimizer(options, {{"exp_avg"}}, Count::none, /*has_fused=*/false), options_(options) {}

  const char* name() const override { return "Lion"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]), beta2 = options_.betas[1];
    const std::vector<at::Tensor>& means = lists.slots[0];
    const double decay =
        options_.decoupled_weight_decay ? update.weight_decay / options_.lr : update.weight_decay;
    if (decay != 0) at::_foreach_mul_(lists.parameters, 1 - update.lr * decay);
    const std::vector<at::Tensor> directions = at::_foreach_mul(means, beta1);
    at::_foreach_add_(directions, lists.gradients, 1 - beta1);
    at::_foreach_sign_(directions);
    at::_foreach_add_(lists.parameters, directions, -update.lr);
    at::_foreach_mul_(means, beta2);
    at::_foreach_add_(means, lists.gradients, 1 - beta2);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Lion, "Lion");

}  // namespace
}  // namespace cytra::training
