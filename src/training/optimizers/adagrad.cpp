// Adagrad: gradients divided by the root of the sum of all their squares. Source:
// torch.optim.Adagrad (Duchi et al. 2011).
#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizers/moments.h"

namespace cytra::training {
namespace {

class Adagrad final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double lr_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
    bool maximize = false;
    Options() { lr = 1e-2; }
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("lr_decay", lr_decay, "lr / (1 + lr_decay n) after n updates", 0, 1e9);
      v("initial_accumulator_value", initial_accumulator_value, "the sum at first", 0, 1e9);
      v("eps", eps, "added to the denominator", 0, 1);
      v("maximize", maximize, "go up the gradient");
    }
    void check() const { OptimizerOptions::check(/*has_fused=*/false); }
  };
  explicit Adagrad(const Options& options)
      : Optimizer(options,
                  {{"sum", /*is_scalar=*/false, options.initial_accumulator_value}},
                  Count::on_host,
                  /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "Adagrad"; }
  double momentum() const override { return 0; }

 private:
  void update(Lists& lists, const Update& update) override {
    if (update.momentum) throw_no_momentum();
    turn_gradients(lists, options_.maximize, update.weight_decay);
    at::_foreach_addcmul_(lists.slots[0], lists.gradients, lists.gradients, 1);
    const std::vector<at::Tensor> denominators = at::_foreach_sqrt(lists.slots[0]);
    at::_foreach_add_(denominators, options_.eps);
    at::_foreach_addcdiv_(
        lists.parameters, lists.gradients, denominators, for_each_count(lists, [&](double n) {
          return at::Scalar(-update.lr / (1 + (n - 1) * options_.lr_decay));
        }));
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Adagrad, "Adagrad");

}  // namespace
}  // namespace cytra::training
