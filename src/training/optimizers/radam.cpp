// RAdam: Adam whose first steps, with too few gradients to tell their variance, are those of
// momentum. Source: torch.optim.RAdam (Liu et al. 2020).
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizers/moments.h"

namespace cytra::training {
namespace {

class RAdam final : public Optimizer {
 public:
  struct Options : MomentOptions {
    bool decoupled_weight_decay = false;
    void visit(auto& v) {
      MomentOptions::visit(v);
      v("decoupled_weight_decay", decoupled_weight_decay, "beside the gradient, as AdamW");
    }
  };
  explicit RAdam(const Options& options)
      : Optimizer(options, {{"exp_avg"}, {"exp_avg_sq"}}, Count::on_host, /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "RAdam"; }
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
    // The numerators of the step divided by the root of the squares, and of the plain step; one of
    // them is 0.
    std::vector<at::Scalar> divided, plain;
    for (const at::Tensor& count : lists.steps) {
      const double n = *count.const_data_ptr<float>(), power = std::pow(beta2, n);
      const double step = update.lr / (1 - std::pow(beta1, n));
      const double most = 2 / (1 - beta2) - 1, length = most - 2 * n * power / (1 - power);
      const double rectified = std::sqrt((1 - power) * (length - 4) * (length - 2) * most /
                                         ((most - 4) * (most - 2) * length));
      divided.emplace_back(length > 5 ? step * rectified : 0);
      plain.emplace_back(length > 5 ? 0 : step);
    }
    const std::vector<at::Tensor> factors = at::_foreach_sqrt(squares);
    at::_foreach_add_(factors, options_.eps);
    at::_foreach_reciprocal_(factors);
    at::_foreach_mul_(factors, divided);
    at::_foreach_add_(factors, plain);
    at::_foreach_addcmul_(lists.parameters, means, factors, -1);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, RAdam, "RAdam");

}  // namespace
}  // namespace cytra::training
