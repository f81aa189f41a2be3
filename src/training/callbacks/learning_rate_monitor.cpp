// LearningRateMonitor: learning rates under Lightning's names, of every parameter group. Source:
// lightning.pytorch.callbacks.LearningRateMonitor.
#include <fmt/format.h>

#include "config/registry.h"
#include "training/callback.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {
using config::Node;

class LearningRateMonitor final : public Callback {
 public:
  struct Options {
    std::optional<std::string> logging_interval;
    bool log_momentum = false, log_weight_decay = false;
    void visit(auto& v) {
      v("logging_interval", logging_interval, "step, or epoch; null: step");
      v("log_momentum", log_momentum, "also momentum, or betas[0]");
      v("log_weight_decay", log_weight_decay, "also weight decay");
    }
    void check() const {
      const std::string given = logging_interval.value_or("step");
      if (given != "step" && given != "epoch")
        throw ConfigError("logging_interval: expected 'step', 'epoch' or null, got '{}'", given);
    }
  };
  explicit LearningRateMonitor(const Options& options)
      : options_(options), per_epoch_(options.logging_interval == "epoch") {}

  void on_epoch_start(Context&) override { is_first_ = true; }
  void on_step_end(Context& context) override {
    if (per_epoch_ ? std::exchange(is_first_, false) : context.is_logged_step()) log(context);
  }

 private:
  void log(Context& context) const {
    const std::vector<ParameterSettings> groups = context.optimizer.groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::string name = fmt::format("lr-{}", context.optimizer.name());
      if (groups.size() > 1) name += fmt::format("/pg{}", g + 1);
      context.logged[name] = context.lr * groups[g].lr_scale;
      if (options_.log_momentum) context.logged[name + "-momentum"] = context.momentum;
      if (options_.log_weight_decay)
        context.logged[name + "-weight_decay"] = groups[g].weight_decay;
    }
  }
  Options options_;
  bool per_epoch_, is_first_ = false;
};
CYTRA_REGISTER(Callback, LearningRateMonitor, "LearningRateMonitor");

}  // namespace
}  // namespace cytra::training
