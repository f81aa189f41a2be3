// SGD with momentum. Source: torch.optim.SGD (fused=True).
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Sgd final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
    bool nesterov = false;
    template <class V>
    void visit(V& v) {
      v("lr", lr, "learning rate, per optimizer step", 0, 1e9);
      v("momentum", momentum, "share of the last update that is kept", 0, 1);
      v("dampening", dampening, "share of the gradient that momentum leaves out", 0, 1);
      v("weight_decay", weight_decay, "pull towards zero", 0, 1e9);
      v("nesterov", nesterov, "look ahead along the momentum");
    }
    void check() const {
      if (nesterov && (momentum <= 0 || dampening != 0))
        throw ConfigError("nesterov needs momentum > 0 and dampening 0");
    }
  };
  explicit Sgd(const Options& options) : options_(options) {}

  void step(const Step& how) override {
    const double lr = how.lr;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parameters, gradients, momenta;
    for (const std::size_t i : with_gradient()) {
      parameters.push_back(parameters_[i]);
      gradients.push_back(parameters_[i].grad());
      if (options_.momentum > 0) momenta.push_back(momentum_[i]);
    }
    if (parameters.empty()) return;
    // The first step sets the buffer to the gradient undampened, as torch does.
    const bool is_first = options_.momentum > 0 && started_.item<float>() == 0;
    at::_fused_sgd_(parameters,
                    gradients,
                    momenta,
                    options_.weight_decay,
                    options_.momentum,
                    lr,
                    options_.dampening,
                    options_.nesterov,
                    /*maximize=*/false,
                    is_first,
                    how.grad_scale.defined() ? std::optional<at::Tensor>(how.grad_scale) : std::nullopt);
    started_.fill_(1);
  }

  std::map<std::string, at::Tensor> state() const override {
    std::map<std::string, at::Tensor> state{{"started", started_}};
    for (std::size_t i = 0; i < momentum_.size(); ++i)
      state["momentum_buffer." + names_[i]] = momentum_[i];
    return state;
  }
  double base_lr() const override { return options_.lr; }

 private:
  void allocate() override {
    started_ = at::zeros({});
    if (options_.momentum == 0) return;
    for (const at::Tensor& parameter : parameters_) momentum_.push_back(at::zeros_like(parameter));
  }
  Options options_;
  std::vector<at::Tensor> momentum_;
  at::Tensor started_;
};
const Registered<Optimizer, Sgd> registered_sgd("SGD", __FILE__);

}  // namespace
}  // namespace cytra::training
