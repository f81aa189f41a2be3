// SGD with momentum. Source: torch.optim.SGD.
#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Sgd final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double momentum = 0, dampening = 0;
    bool nesterov = false, maximize = false;
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("momentum", momentum, "share of the last update that is kept", 0, 1);
      v("dampening", dampening, "share of the gradient that momentum leaves out", 0, 1);
      v("nesterov", nesterov, "look ahead along the momentum");
      v("maximize", maximize, "go up the gradient");
    }
    void check() const {
      OptimizerOptions::check();
      if (nesterov && (momentum <= 0 || dampening != 0))
        throw ConfigError("nesterov needs momentum > 0 and dampening 0");
    }
  };
  // The first step sets the momentum to the gradient undampened, as torch does; without dampening
  // it does so by itself, the momentum being 0.
  explicit Sgd(const Options& options)
      : Optimizer(
            options,
            options.momentum > 0 ? std::vector<Slot>{{"momentum_buffer"}} : std::vector<Slot>{},
            options.momentum > 0 && options.dampening > 0 ? Count::on_host : Count::none),
        options_(options) {}

  const char* name() const override { return "SGD"; }
  double momentum() const override { return options_.momentum; }

 private:
  void update(Lists& lists, const Update& update) override {
    if (update.momentum && lists.slots.empty()) throw_no_momentum();
    const auto is_first = [](const at::Tensor& count) {
      return *count.const_data_ptr<float>() == 1;
    };
    const auto first = std::ranges::count_if(lists.steps, is_first);
    if (first == 0 || first == static_cast<std::ptrdiff_t>(lists.parameters.size()))
      return run(lists, update, first > 0);
    Lists parts[2];
    for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
      Lists& part = parts[is_first(lists.steps[i]) ? 1 : 0];
      part.parameters.push_back(lists.parameters[i]);
      part.gradients.push_back(lists.gradients[i]);
      part.slots.resize(1);
      part.slots[0].push_back(lists.slots[0][i]);
    }
    run(parts[0], update, false);
    run(parts[1], update, true);
  }

  void run(Lists& lists, const Update& update, bool is_first) const {
    const at::TensorList momenta = lists.slots.empty() ? at::TensorList() : lists.slots[0];
    const double momentum = update.momentum.value_or(options_.momentum);
    if (is_fused()) {
      const auto run_at = [&](const auto& lr) {
        at::_fused_sgd_(lists.parameters,
                        lists.gradients,
                        momenta,
                        update.weight_decay,
                        momentum,
                        lr,
                        options_.dampening,
                        options_.nesterov,
                        options_.maximize,
                        is_first,
                        update.grad_scale,
                        update.found_inf);
      };
      return update.lr_on_device ? run_at(*update.lr_on_device) : run_at(update.lr);
    }
    turn_gradients(lists, options_.maximize, update.weight_decay);
    at::TensorList direction = lists.gradients;
    if (!momenta.empty()) {
      at::_foreach_mul_(momenta, momentum);
      at::_foreach_add_(momenta, lists.gradients, is_first ? 1 : 1 - options_.dampening);
      if (options_.nesterov) {
        lists.gradients = at::_foreach_add(lists.gradients, momenta, momentum);
        direction = lists.gradients;
      } else {
        direction = momenta;
      }
    }
    at::_foreach_add_(lists.parameters, direction, -update.lr);
  }

  Options options_;
};
CYTRA_REGISTER(Optimizer, Sgd, "SGD");

}  // namespace
}  // namespace cytra::training
