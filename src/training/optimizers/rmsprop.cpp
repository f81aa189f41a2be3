// RMSprop. Source: torch.optim.RMSprop (Tieleman & Hinton 2012; `centered` by Graves 2013).
#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class RmsProp final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double alpha = 0.99, eps = 1e-8, momentum = 0;
    bool centered = false, maximize = false;
    Options() { lr = 1e-2; }
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("alpha", alpha, "decay of the mean of the squared gradient", 0, 1);
      v("eps", eps, "added to the denominator", 0, 1);
      v("momentum", momentum, "share of the last update that is kept", 0, 1);
      v("centered", centered, "divide by the standard deviation of the gradient");
      v("maximize", maximize, "go up the gradient");
    }
    void check() const { OptimizerOptions::check(/*has_fused=*/false); }
  };
  explicit RmsProp(const Options& options)
      : Optimizer(options, slots_of(options), Count::none, /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "RMSprop"; }
  double momentum() const override { return options_.momentum; }

 private:
  static std::vector<Slot> slots_of(const Options& options) {
    std::vector<Slot> slots{{"square_avg"}};
    if (options.centered) slots.push_back({"grad_avg"});
    if (options.momentum > 0) slots.push_back({"momentum_buffer"});
    return slots;
  }

  void update(Lists& lists, const Update& update) override {
    if (update.momentum && options_.momentum == 0) throw_no_momentum();
    const double alpha = options_.alpha;
    const std::vector<at::Tensor>& squares = lists.slots[0];
    turn_gradients(lists, options_.maximize, update.weight_decay);
    at::_foreach_mul_(squares, alpha);
    at::_foreach_addcmul_(squares, lists.gradients, lists.gradients, 1 - alpha);
    std::vector<at::Tensor> denominators;
    if (options_.centered) {
      const std::vector<at::Tensor>& means = lists.slots[1];
      at::_foreach_lerp_(means, lists.gradients, 1 - alpha);
      denominators = at::_foreach_addcmul(squares, means, means, -1);
      at::_foreach_sqrt_(denominators);
    } else {
      denominators = at::_foreach_sqrt(squares);
    }
    at::_foreach_add_(denominators, options_.eps);
    if (options_.momentum == 0) {
      at::_foreach_addcdiv_(lists.parameters, lists.gradients, denominators, -update.lr);
      return;
    }
    const std::vector<at::Tensor>& momenta = lists.slots.back();
    at::_foreach_mul_(momenta, update.momentum.value_or(options_.momentum));
    at::_foreach_addcdiv_(momenta, lists.gradients, denominators, 1);
    at::_foreach_add_(lists.parameters, momenta, -update.lr);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, RmsProp, "RMSprop");

}  // namespace
}  // namespace cytra::training
