// ReduceLROnPlateau: lowers the learning rate when a metric no longer gets better. Source:
// torch.optim.lr_scheduler.ReduceLROnPlateau.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

class ReduceLROnPlateau final : public Scheduler {
 public:
  struct Options : WarmupOptions {
    std::string monitor = "val/loss", mode = "min", threshold_mode = "rel";
    double factor = 0.1, threshold = 1e-4, min_lr = 0, eps = 1e-8;
    int64_t patience = 10, cooldown = 0;
    void visit(auto& v) {
      v("monitor", monitor, "metric to watch");
      v("mode", mode, "min: lower is better", {"min", "max"});
      v("factor", factor, "factor of the learning rate when it is lowered", 0, 1);
      v("patience", patience, "validations without a gain before the rate is lowered", 0, 1e9);
      v("threshold", threshold, "smallest change that counts", 0, 1e9);
      v("threshold_mode",
        threshold_mode,
        "whether threshold is a share of the best value, or absolute",
        {"rel", "abs"});
      v("cooldown", cooldown, "validations after a reduction that are not counted", 0, 1e9);
      v("min_lr", min_lr, "lowest learning rate", 0, 1e9);
      v("eps", eps, "smaller reductions are not made", 0, 1);
      WarmupOptions::visit(v);
    }
    void check() const {
      if (factor >= 1) throw ConfigError("factor: expected a value below 1");
    }
  };
  explicit ReduceLROnPlateau(const Options& options) : options_(options) {}

  Rates at(double base_lr, const Position& position) const override {
    double lr = base_lr;
    for (int64_t i = 0; i < reductions_; ++i) {
      const double lower = std::max(lr * options_.factor, options_.min_lr);
      if (!(lr - lower > options_.eps)) break;  // nor would a later one be made
      lr = lower;
    }
    return {lr * options_.WarmupOptions::factor(position.step)};
  }

  void on_metrics(const std::map<std::string, double>& metrics) override {
    const auto metric = metrics.find(options_.monitor);
    if (metric == metrics.end()) {
      throw ConfigError("scheduler.monitor: no metric '{}'.{}",
                        options_.monitor,
                        suggestion(options_.monitor, keys_of(metrics)));
    }
    if (is_better(metric->second)) {
      best_ = metric->second;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooldown_ > 0) {
      --cooldown_;
      bad_ = 0;
    }
    if (bad_ > options_.patience) {
      ++reductions_;
      cooldown_ = options_.cooldown;
      bad_ = 0;
    }
  }

  std::map<std::string, double> state() const override {
    std::map<std::string, double> state{{"num_bad_epochs", static_cast<double>(bad_)},
                                        {"cooldown_counter", static_cast<double>(cooldown_)},
                                        {"reductions", static_cast<double>(reductions_)}};
    if (best_) state["best"] = *best_;
    return state;
  }
  void load(const std::map<std::string, double>& state) override {
    const auto get = [&](const char* name) {
      const auto entry = state.find(name);
      return entry == state.end() ? 0 : static_cast<int64_t>(entry->second);
    };
    bad_ = get("num_bad_epochs");
    cooldown_ = get("cooldown_counter");
    reductions_ = get("reductions");
    best_.reset();
    if (state.count("best") > 0) best_ = state.at("best");
  }

 private:
  bool is_better(double value) const {
    if (!std::isfinite(value)) return false;
    if (!best_) return true;
    const double sign = options_.mode == "min" ? -1 : 1;
    const double bound = options_.threshold_mode == "rel" ? *best_ * (1 + sign * options_.threshold)
                                                          : *best_ + sign * options_.threshold;
    return sign * value > sign * bound;
  }

  Options options_;
  std::optional<double> best_;
  int64_t bad_ = 0, cooldown_ = 0, reductions_ = 0;
};
CYTRA_REGISTER(Scheduler, ReduceLROnPlateau, "ReduceLROnPlateau");

}  // namespace
}  // namespace cytra::training
