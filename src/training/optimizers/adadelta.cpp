// Adadelta: the size of a step follows from the earlier ones. Source: torch.optim.Adadelta (Zeiler
// 2012).
#include <ATen/ATen.h>

#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Adadelta final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double rho = 0.9, eps = 1e-6;
    bool maximize = false;
    Options() { lr = 1; }
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("rho", rho, "decay of the means of squared gradients and steps", 0, 1);
      v("eps", eps, "added below the roots; also makes the first steps", 0, 1);
      v("maximize", maximize, "go up the gradient");
    }
    void check() const { OptimizerOptions::check(/*has_fused=*/false); }
  };
  explicit Adadelta(const Options& options)
      : Optimizer(options, {{"square_avg"}, {"acc_delta"}}, Count::none, /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "Adadelta"; }
  double momentum() const override { return 0; }

 private:
  void update(Lists& lists, const Update& update) override {
    if (update.momentum) throw_no_momentum();
    const double rho = options_.rho;
    const std::vector<at::Tensor>&squares = lists.slots[0], &deltas = lists.slots[1];
    turn_gradients(lists, options_.maximize, update.weight_decay);
    at::_foreach_mul_(squares, rho);
    at::_foreach_addcmul_(squares, lists.gradients, lists.gradients, 1 - rho);
    const auto root = [&](at::TensorList means) {
      std::vector<at::Tensor> roots = at::_foreach_add(means, options_.eps);
      at::_foreach_sqrt_(roots);
      return roots;
    };
    const std::vector<at::Tensor> steps = root(deltas);
    at::_foreach_div_(steps, root(squares));
    at::_foreach_mul_(steps, lists.gradients);
    at::_foreach_mul_(deltas, rho);
    at::_foreach_addcmul_(deltas, steps, steps, 1 - rho);
    at::_foreach_add_(lists.parameters, steps, -update.lr);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Adadelta, "Adadelta");

}  // namespace
}  // namespace cytra::training
