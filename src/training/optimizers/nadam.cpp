// NAdam: Adam with Nesterov's momentum. Source: torch.optim.NAdam (Dozat 2016).
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizers/moments.h"

namespace cytra::training {
namespace {

class NAdam final : public Optimizer {
 public:
  struct Options : MomentOptions {
    double momentum_decay = 4e-3;
    bool decoupled_weight_decay = false;
    Options() { lr = 2e-3; }
    void visit(auto& v) {
      MomentOptions::visit(v);
      v("momentum_decay", momentum_decay, "how fast the momentum grows to betas[0]", 0, 1e3);
      v("decoupled_weight_decay", decoupled_weight_decay, "beside the gradient, as AdamW");
    }
  };
  explicit NAdam(const Options& options)
      : Optimizer(options,
                  {{"exp_avg"},
                   {"exp_avg_sq"},
                   {"mu_product", /*is_scalar=*/true, 1, /*is_on_host=*/true}},
                  Count::on_host,
                  /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "NAdam"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]), beta2 = options_.betas[1];
    const std::vector<at::Tensor>&means = lists.slots[0], &squares = lists.slots[1];
    const bool decoupled = options_.decoupled_weight_decay;
    turn_gradients(lists, options_.maximize, decoupled ? 0 : update.weight_decay);
    if (decoupled && update.weight_decay != 0)
      at::_foreach_mul_(lists.parameters, 1 - update.lr * update.weight_decay);
    at::_foreach_lerp_(means, lists.gradients, 1 - beta1);
    at::_foreach_mul_(squares, beta2);
    at::_foreach_addcmul_(squares, lists.gradients, lists.gradients, 1 - beta2);
    // The factors follow from the momenta of this step and the next. The product of the momenta is
    // kept as a state, since a schedule may change the momentum.
    std::vector<at::Scalar> of_gradients, of_means;
    for (std::size_t i = 0; i < lists.steps.size(); ++i) {
      const double n = *lists.steps[i].const_data_ptr<float>();
      const auto momentum_at = [&](double step) {
        return beta1 * (1 - 0.5 * std::pow(0.96, step * options_.momentum_decay));
      };
      auto& product = *lists.slots[2][i].mutable_data_ptr<float>();
      product *= static_cast<float>(momentum_at(n));
      const double next = momentum_at(n + 1);
      of_gradients.emplace_back(-update.lr * (1 - momentum_at(n)) / (1 - product));
      of_means.emplace_back(-update.lr * next / (1 - product * next));
    }
    const std::vector<at::Tensor> denominators = at::_foreach_div(
        squares,
        for_each_count(lists, [&](double n) { return at::Scalar(1 - std::pow(beta2, n)); }));
    at::_foreach_sqrt_(denominators);
    at::_foreach_add_(denominators, options_.eps);
    // Two additions, as torch's: their sum in 16 bits would be rounded otherwise.
    at::_foreach_addcdiv_(lists.parameters, lists.gradients, denominators, of_gradients);
    at::_foreach_addcdiv_(lists.parameters, means, denominators, of_means);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, NAdam, "NAdam");

}  // namespace
}  // namespace cytra::training
