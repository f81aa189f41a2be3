// WeightedLoss: a weighted sum of losses by name. With two terms and nnU-Net's weights it equals
// nnunetv2.training.loss.compound_losses.

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"

namespace cytra::nn {
namespace {

class WeightedLoss final : public Loss {
 public:
  struct Options : LossOptions {
    config::Node losses, weights;
    void visit(auto& v) {
      v("losses", losses, "what is summed, by names of your choice", config::map_of<Loss>());
      v("weights", weights, "weight of each loss by its name; 1 for a loss without one");
      LossOptions::visit(v);
    }
    void check() const {
      if (losses.map.empty()) throw ConfigError("losses: expected at least one, as {dice: {...}}");
      for (const auto& [name, weight] : weights.map) {
        if (losses.find_direct(name) == nullptr)
          throw ConfigError("weights.{}: there is no loss of that name", name);
        if (!(weight.as<double>() >= 0))
          throw ConfigError("weights.{}: expected a number of at least 0", name);
      }
      for (const auto& [name, loss] : losses.map) {
        if (!loss.is_null() && config::components_of(kKind).name_of(loss) == "DeepSupervisionLoss")
          throw ConfigError("losses.{}: put DeepSupervisionLoss around this one", name);
      }
    }
  };
  explicit WeightedLoss(const Options& options) : Loss(options) {
    for (const auto& [name, loss] : options.losses.map) {
      if (loss.is_null()) continue;
      const config::Node* weight = options.weights.find_direct(name);
      terms_.push_back({make<Loss>(loss), weight == nullptr ? 1 : weight->as<double>()});
    }
  }

 protected:
  at::Tensor compute(const LossInput& in) const override {
    at::Tensor sum = at::zeros({}, in.logits.options());
    for (const LossTerm& term : terms_) {
      if (term.weight > 0) sum = sum + term.weight * (*term.loss)(in.logits, in.target, in.mask);
    }
    return sum;
  }

 private:
  struct LossTerm {
    std::shared_ptr<Loss> loss;
    double weight;
  };
  std::vector<LossTerm> terms_;
};
CYTRA_REGISTER(Loss, WeightedLoss, "WeightedLoss");

}  // namespace
}  // namespace cytra::nn
