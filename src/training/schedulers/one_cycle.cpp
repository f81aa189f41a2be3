// OneCycleLR: up to max_lr, then down; the momentum the other way. Source: Smith & Topin 2018;
// torch.optim.lr_scheduler.OneCycleLR.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "training/schedulers/closed_form.h"

namespace cytra::training {
namespace {

/// Beyond total_steps, where torch throws, the last rates stay.
struct OneCycleLR : ScheduleOptions {
  std::optional<double> max_lr;
  std::optional<int64_t> total_steps, epochs, steps_per_epoch;
  double pct_start = 0.3, base_momentum = 0.85, max_momentum = 0.95, div_factor = 25,
         final_div_factor = 1e4;
  std::string anneal_strategy = "cos";
  bool cycle_momentum = true, three_phase = false;
  void visit(auto& v) {
    v("max_lr", max_lr, "highest learning rate; null: the optimizer's", 0, 1e9);
    v("total_steps", total_steps, "steps of the cycle; null: the whole training", 1, 1e12);
    v("epochs", epochs, "with steps_per_epoch, in place of total_steps", 1, 1e9);
    v("steps_per_epoch", steps_per_epoch, "with epochs, in place of total_steps", 1, 1e12);
    v("pct_start", pct_start, "part of the cycle with a rising rate", 0, 1);
    v("anneal_strategy", anneal_strategy, "curve between the ends", {"cos", "linear"});
    v("cycle_momentum", cycle_momentum, "momentum falls while the rate rises, and back");
    v("base_momentum", base_momentum, "momentum, or betas[0], at the highest rate", 0, 1);
    v("max_momentum", max_momentum, "momentum, or betas[0], at the ends", 0, 1);
    v("div_factor", div_factor, "max_lr divided by the first rate", 1e-9, 1e12);
    v("final_div_factor", final_div_factor, "the first rate divided by the last", 1e-9, 1e12);
    v("three_phase", three_phase, "down to the first rate as fast as up, then to the last");
    ScheduleOptions::visit(v);
  }
  void check() {
    if (epochs.has_value() != steps_per_epoch.has_value() || (epochs && total_steps))
      throw ConfigError("expected total_steps, or epochs and steps_per_epoch, or none of them");
    if (epochs) total_steps = *epochs * *steps_per_epoch;
  }
  Rates value(double base_lr, int64_t index, int64_t total) const {
    total = whole_if_null(total_steps, total, "total_steps");
    const double highest = max_lr.value_or(base_lr), first = highest / div_factor;
    const double last = first / final_div_factor;
    const double rise = pct_start * static_cast<double>(total);
    const Point start{0, first, max_momentum}, top{rise - 1, highest, base_momentum},
        back{2 * rise - 2, first, max_momentum},
        end{static_cast<double>(total - 1), last, max_momentum};
    const double step = static_cast<double>(std::min(index, total - 1));
    if (step <= top.step) return between(start, top, step);
    if (!three_phase) return between(top, end, step);
    return step <= back.step ? between(top, back, step) : between(back, end, step);
  }

 private:
  struct Point {
    double step, lr, momentum;
  };
  Rates between(const Point& from, const Point& to, double step) const {
    const double way = to.step > from.step ? (step - from.step) / (to.step - from.step) : 1;
    const auto mix = [&](double a, double b) {
      return anneal_strategy == "cos" ? b + (a - b) / 2 * (std::cos(M_PI * way) + 1)
                                      : (b - a) * way + a;
    };
    Rates rates{mix(from.lr, to.lr)};
    if (cycle_momentum) rates.momentum = mix(from.momentum, to.momentum);
    return rates;
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<OneCycleLR>, "OneCycleLR");

}  // namespace
}  // namespace cytra::training
