// NovoGrad: gradients divided by the norm of their layer. Source: Ginsburg et al. 2019;
// monai.optimizers.Novograd.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Novograd final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double eps = 1e-8;
    std::vector<double> betas{0.9, 0.98};
    bool grad_averaging = false, amsgrad = false;
    template <class V>
    void visit(V& v) {
      OptimizerOptions::visit(v);
      v("betas", betas, "decay of the means of gradient and squared norm, two numbers", 0, 1);
      v("eps", eps, "added to the denominator", 0, 1);
      v("grad_averaging", grad_averaging, "weigh the gradient by 1 - betas[0]");
      v("amsgrad", amsgrad, "divide by the largest mean of the squared norm so far");
    }
    void check() const {
      OptimizerOptions::check(/*has_fused=*/false);
      if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
    }
  };
  explicit Novograd(const Options& options)
      : Optimizer(
            options,
            options.amsgrad
                ? std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}
                : std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq", true}},
            Count::none,
            /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "Novograd"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]), beta2 = options_.betas[1];
    const std::vector<at::Tensor>& means = lists.slots[0];
    const at::Tensor norms = at::stack(at::_foreach_norm(lists.gradients)).square();
    at::Tensor squares = at::stack(lists.slots[1]);
    // The first norm is taken as it is.
    squares = at::where(squares == 0, norms, squares * beta2 + norms * (1 - beta2));
    at::_foreach_copy_(lists.slots[1], squares.unbind());
    if (options_.amsgrad) {
      at::_foreach_maximum_(lists.slots[2], lists.slots[1]);
      squares = at::stack(lists.slots[2]);
    }
    lists.gradients = at::_foreach_div(lists.gradients, (squares.sqrt() + options_.eps).unbind());
    if (update.weight_decay != 0)
      at::_foreach_add_(lists.gradients, lists.parameters, update.weight_decay);
    if (options_.grad_averaging) at::_foreach_mul_(lists.gradients, 1 - beta1);
    at::_foreach_mul_(means, beta1);
    at::_foreach_add_(means, lists.gradients);
    at::_foreach_add_(lists.parameters, means, -update.lr);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Novograd, "Novograd");

}  // namespace
}  // namespace cytra::training
