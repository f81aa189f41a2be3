// EarlyStopping: ends a training whose metric no longer gets better. Source:
// lightning.pytorch.callbacks.EarlyStopping.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {
using config::Node;
using config::Unused;

class EarlyStopping final : public Callback {
 public:
  struct Options {
    std::string monitor = "val/loss", mode = "min";
    double min_delta = 0;
    int64_t patience = 3;
    bool strict = true, check_finite = true;
    std::optional<double> stopping_threshold, divergence_threshold;
    void visit(auto& v) {
      v("monitor", monitor, "metric to watch");
      v("mode", mode, "min: lower is better", {"min", "max"});
      v("min_delta", min_delta, "smallest change that counts", 0, 1e9);
      v("patience", patience, "validations without a gain before the end", 0, 1e9);
      v("strict", strict, "a missing metric is an error; false: it is ignored");
      v("check_finite", check_finite, "stop when the metric is not finite");
      v("stopping_threshold", stopping_threshold, "the metric is good enough here: stop");
      v("divergence_threshold", divergence_threshold, "the metric is hopeless here: stop");
      v("check_on_train_epoch_end", Unused{{"false"}}, "looks at validations");
      v("verbose", Unused{}, "of Lightning");
      v("log_rank_zero_only", Unused{}, "of Lightning");
    }
  };
  explicit EarlyStopping(const Options& options) : options_(options) {}

  bool takes_part(const TrainerOptions& trainer, bool) const override {
    return trainer.fast_dev_run == 0;
  }
  void on_validation_end(Context& context) override {
    const Metrics& metrics = context.state.metrics;
    const auto metric = metrics.find(options_.monitor);
    if (metric == metrics.end()) {
      if (!options_.strict) return;
      throw ConfigError("callbacks.{}.monitor: no metric '{}'.{}",
                        name,
                        options_.monitor,
                        suggestion(options_.monitor, keys_of(metrics)));
    }
    const std::string reason = reason_to_stop(metric->second);
    if (reason.empty()) return;
    log::info("early stopping: {} {}", options_.monitor, reason);
    context.stop = true;
  }

  Node state() const override {
    Node state = Node::make_map();
    state.set("waited", Node::make_integer(waited_));
    state.set("watched", Node::make_string(options_.mode + " " + options_.monitor));
    if (best_ && std::isfinite(*best_)) state.set("best", Node::make_real(*best_));
    return state;
  }
  void load(const Node& state) override {
    const std::string watched = options_.mode + " " + options_.monitor;
    if (state.get<std::string>("watched", watched) != watched) return;  // it starts afresh
    waited_ = state.get<int64_t>("waited");
    best_.reset();
    if (state.has("best")) best_ = state.get<double>("best");
  }

 private:
  /// "" to go on.
  std::string reason_to_stop(double value) {
    if (options_.check_finite && !std::isfinite(value)) return fmt::format("is {}", value);
    if (options_.stopping_threshold && is_better(value, *options_.stopping_threshold))
      return fmt::format("{:.4g} has reached {:.4g}", value, *options_.stopping_threshold);
    if (options_.divergence_threshold && is_better(*options_.divergence_threshold, value))
      return fmt::format("{:.4g} is worse than {:.4g}", value, *options_.divergence_threshold);
    const double delta = options_.mode == "min" ? -options_.min_delta : options_.min_delta;
    if (std::isfinite(value) && (!best_ || is_better(value, *best_ + delta))) {
      best_ = value;
      waited_ = 0;
    } else if (++waited_ >= options_.patience) {
      return fmt::format("did not get better than {:.4g} in {} validations",
                         best_.value_or(std::nan("")),
                         waited_);
    }
    return "";
  }
  bool is_better(double a, double b) const { return options_.mode == "min" ? a < b : a > b; }

  Options options_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};
CYTRA_REGISTER(Callback, EarlyStopping, "EarlyStopping");

}  // namespace
}  // namespace cytra::training
