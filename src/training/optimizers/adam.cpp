// Adam and AdamW. Source: torch.optim.Adam / AdamW (Kingma & Ba 2015, Loshchilov & Hutter 2019).
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

template <bool decoupled>  // weight decay beside the gradient (AdamW), or in it (Adam)
class Adam final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double eps = 1e-8;
    std::vector<double> betas{0.9, 0.999};
    bool amsgrad = false, maximize = false;
    Options() { weight_decay = decoupled ? 1e-2 : 0; }
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("betas", betas, "decay of the means of gradient and squared gradient, two numbers", 0, 1);
      v("eps", eps, "added to the denominator", 0, 1);
      v("amsgrad", amsgrad, "divide by the largest mean of the squared gradient so far");
      v("maximize", maximize, "go up the gradient");
    }
    void check() const {
      OptimizerOptions::check();
      if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
    }
  };
  explicit Adam(const Options& options)
      : Optimizer(options,
                  options.amsgrad
                      ? std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}
                      : std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq"}},
                  Count::on_device_if_fused),
        options_(options) {}

  const char* name() const override { return decoupled ? "AdamW" : "Adam"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]), beta2 = options_.betas[1];
    const std::vector<at::Tensor>& means = lists.slots[0];
    const std::vector<at::Tensor>& squares = lists.slots[1];
    if (is_fused()) {
      const auto run_at = [&](const auto& kernel, const auto& lr) {
        kernel(lists.parameters,
               lists.gradients,
               means,
               squares,
               options_.amsgrad ? at::TensorList(lists.slots[2]) : at::TensorList(),
               lists.steps,
               lr,
               beta1,
               beta2,
               update.weight_decay,
               options_.eps,
               options_.amsgrad,
               options_.maximize,
               update.grad_scale,
               update.found_inf);
      };
      const auto run = [&](const auto& kernel) {
        update.lr_on_device ? run_at(kernel, *update.lr_on_device) : run_at(kernel, update.lr);
      };
      if constexpr (decoupled) {
        run([](const auto&... arguments) { at::_fused_adamw_(arguments...); });
      } else {
        run([](const auto&... arguments) { at::_fused_adam_(arguments...); });
      }
      return;
    }
    turn_gradients(lists, options_.maximize, decoupled ? 0 : update.weight_decay);
    if (decoupled && update.weight_decay != 0)
      at::_foreach_mul_(lists.parameters, 1 - update.lr * update.weight_decay);
    at::_foreach_lerp_(means, lists.gradients, 1 - beta1);
    at::_foreach_mul_(squares, beta2);
    at::_foreach_addcmul_(squares, lists.gradients, lists.gradients, 1 - beta2);
    if (options_.amsgrad) at::_foreach_maximum_(lists.slots[2], squares);
    const std::vector<at::Tensor> denominators =
        at::_foreach_sqrt(options_.amsgrad ? lists.slots[2] : squares);
    std::vector<at::Scalar> roots, sizes;
    for (const at::Tensor& count : lists.steps) {
      const double steps = *count.const_data_ptr<float>();
      roots.emplace_back(std::sqrt(1 - std::pow(beta2, steps)));
      sizes.emplace_back(-update.lr / (1 - std::pow(beta1, steps)));
    }
    at::_foreach_div_(denominators, roots);
    at::_foreach_add_(denominators, options_.eps);
    at::_foreach_addcdiv_(lists.parameters, means, denominators, sizes);
  }

  Options options_;
};

CYTRA_REGISTER(Optimizer, Adam<true>, "AdamW");
CYTRA_REGISTER(Optimizer, Adam<false>, "Adam");

}  // namespace
}  // namespace cytra::training
