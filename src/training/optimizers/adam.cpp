// AdamW and Adam in one fused pass over all parameters. Source: torch.optim.AdamW / Adam
// (fused=True).
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

template <bool decoupled>  // weight decay beside the gradient (AdamW), or in it (Adam)
class Adam final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3, eps = 1e-8, weight_decay = decoupled ? 1e-2 : 0;
    std::vector<double> betas{0.9, 0.999};
    template <class V>
    void visit(V& v) {
      v("lr", lr, "learning rate, per optimizer step", 0, 1e9);
      v("betas", betas, "decay of the means of gradient and squared gradient, two numbers", 0, 1);
      v("eps", eps, "added to the denominator", 0, 1);
      v("weight_decay", weight_decay, "pull towards zero", 0, 1e9);
    }
    void check() const {
      if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
    }
  };
  explicit Adam(const Options& options) : options_(options) {}

  void step(const Step& how) override {
    const double lr = how.lr;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parameters, gradients, means, squares, steps;
    for (const std::size_t i : with_gradient()) {
      parameters.push_back(parameters_[i]);
      gradients.push_back(parameters_[i].grad());
      means.push_back(exp_avg_[i]);
      squares.push_back(exp_avg_sq_[i]);
      steps.push_back(step_[i]);
    }
    if (parameters.empty()) return;
    at::_foreach_add_(steps, 1);
    using List = at::TensorList;
    using Maybe = const std::optional<at::Tensor>&;
    using Update = void (*)(List,
                            List,
                            List,
                            List,
                            List,
                            List,
                            double,
                            double,
                            double,
                            double,
                            double,
                            bool,
                            bool,
                            Maybe,
                            Maybe);
    const auto update = decoupled ? static_cast<Update>(&at::_fused_adamw_)
                                  : static_cast<Update>(&at::_fused_adam_);
    update(parameters,
           gradients,
           means,
           squares,
           /*max_exp_avg_sqs=*/{},
           steps,
           lr,
           options_.betas[0],
           options_.betas[1],
           options_.weight_decay,
           options_.eps,
           /*amsgrad=*/false,
           /*maximize=*/false,
           how.grad_scale.defined() ? std::optional<at::Tensor>(how.grad_scale) : std::nullopt,
           how.found_inf.defined() ? std::optional<at::Tensor>(how.found_inf) : std::nullopt);
  }

  std::map<std::string, at::Tensor> state() const override {
    std::map<std::string, at::Tensor> state;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      state["exp_avg." + names_[i]] = exp_avg_[i];
      state["exp_avg_sq." + names_[i]] = exp_avg_sq_[i];
      state["step." + names_[i]] = step_[i];
    }
    return state;
  }
  double base_lr() const override { return options_.lr; }

 private:
  void allocate() override {
    for (const at::Tensor& parameter : parameters_) {
      exp_avg_.push_back(at::zeros_like(parameter));
      exp_avg_sq_.push_back(at::zeros_like(parameter));
      step_.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(parameter.device())));
    }
  }
  Options options_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_, step_;
};

const Registered<Optimizer, Adam<true>> registered_adamw("AdamW", __FILE__);
const Registered<Optimizer, Adam<false>> registered_adam("Adam", __FILE__);

}  // namespace
}  // namespace cytra::training
