// EarlyStopping: ends a training whose metric no longer gets better. Source:
// lightning.pytorch.callbacks.EarlyStopping.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Unused;

class EarlyStopping final : public Callback {
 public:
  struct Options {
    std::string monitor = "val/loss", mode = "min";
    double min_delta = 0;
    int64_t patience = 3;
    template <class V>
    void visit(V& v) {
      v("monitor", monitor, "metric to watch");
      v("mode", mode, "min: lower is better", {"min", "max"});
      v("min_delta", min_delta, "smallest change that counts", 0, 1e9);
      v("patience", patience, "validations without a gain before the end", 0, 1e9);
      v("strict", Unused{{"true"}}, "a metric that is not there is an error");
      v("check_finite", Unused{{"true"}}, "a loss that is not finite is an error");
      v("stopping_threshold", Unused{{"null"}}, "patience alone ends the training");
      v("divergence_threshold", Unused{{"null"}}, "patience alone ends the training");
      v("check_on_train_epoch_end", Unused{{"false"}}, "looks at validations");
      v("verbose", Unused{}, "of Lightning");
    }
  };
  explicit EarlyStopping(const Options& options) : options_(options) {}

  void on_validation_end(TrainState& state, Control& control) override {
    const auto metric = state.metrics.find(options_.monitor);
    if (metric == state.metrics.end()) {
      throw ConfigError(
          fmt::format("callbacks.early_stopping.monitor: no metric '{}'", options_.monitor));
    }
    const double gain = options_.mode == "min" ? best_ - metric->second : metric->second - best_;
    if (std::isnan(best_) || gain > options_.min_delta) {
      best_ = metric->second;
      waited_ = 0;
    } else if (++waited_ >= options_.patience) {
      log::info("early stopping: {} did not get better than {:.4g} in {} validations",
                options_.monitor,
                best_,
                waited_);
      control.stop = true;
    }
  }

 private:
  Options options_;
  double best_ = std::nan("");
  int64_t waited_ = 0;
};
CYTRA_REGISTER(Callback, EarlyStopping, "EarlyStopping");

}  // namespace
}  // namespace cytra::training
