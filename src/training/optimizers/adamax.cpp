// Adamax: Adam with the largest gradient in place of the mean square. Source: torch.optim.Adamax
// (Kingma & Ba 2015).
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizers/moments.h"

namespace cytra::training {
namespace {

class Adamax final : public Optimizer {
 public:
  struct Options : MomentOptions {
    Options() { lr = 2e-3; }
  };
  explicit Adamax(const Options& options)
      : Optimizer(options, {{"exp_avg"}, {"exp_inf"}}, Count::on_host, /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "Adamax"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]);
    const std::vector<at::Tensor>&means = lists.slots[0], &sizes = lists.slots[1];
    turn_gradients(lists, options_.maximize, update.weight_decay);
    at::_foreach_lerp_(means, lists.gradients, 1 - beta1);
    at::_foreach_mul_(sizes, options_.betas[1]);
    const std::vector<at::Tensor> now = at::_foreach_abs(lists.gradients);
    at::_foreach_add_(now, options_.eps);
    at::_foreach_maximum_(sizes, now);
    at::_foreach_addcdiv_(lists.parameters, means, sizes, for_each_count(lists, [&](double n) {
                            return at::Scalar(-update.lr / (1 - std::pow(beta1, n)));
                          }));
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Adamax, "Adamax");

}  // namespace
}  // namespace cytra::training
