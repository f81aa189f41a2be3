// CyclicLR: up to max_lr and down again, over and over; the momentum the other way. Source: Smith
// 2017; torch.optim.lr_scheduler.CyclicLR in closed form.
#include <cmath>

#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

class CyclicLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    std::optional<double> base_lr, max_lr;
    int64_t step_size_up = 2000;
    std::optional<int64_t> step_size_down;
    std::string mode = "triangular";
    double gamma = 1, base_momentum = 0.8, max_momentum = 0.9;
    bool cycle_momentum = true;
    void visit(auto& v) {
      v("base_lr", base_lr, "lowest learning rate; null: a tenth of max_lr", 0, 1e9);
      v("max_lr", max_lr, "highest learning rate; null: the optimizer's", 0, 1e9);
      v("step_size_up", step_size_up, "steps with a rising rate", 1, 1e12);
      v("step_size_down", step_size_down, "with a falling one; null: as many", 1, 1e12);
      v("mode",
        mode,
        "cycles of the same height, half as high each time, or gamma^step times as high",
        {"triangular", "triangular2", "exp_range"});
      v("gamma", gamma, "of exp_range", 0, 1);
      v("cycle_momentum", cycle_momentum, "momentum falls while the rate rises, and back");
      v("base_momentum", base_momentum, "momentum, or betas[0], at the highest rate", 0, 1);
      v("max_momentum", max_momentum, "momentum, or betas[0], at the lowest", 0, 1);
      ScheduleOptions::visit(v);
    }
  };
  explicit CyclicLR(const Options& options) : Schedule(options), options_(options) {}

  Rates value(double base_lr, int64_t index, int64_t /*total*/) const override {
    const Options& o = options_;
    const int64_t down = o.step_size_down.value_or(o.step_size_up), all = o.step_size_up + down;
    const int64_t cycle = index / all, step = index % all;
    const double height = step <= o.step_size_up
                              ? static_cast<double>(step) / static_cast<double>(o.step_size_up)
                              : static_cast<double>(all - step) / static_cast<double>(down);
    const double scale = o.mode == "triangular2" ? std::exp2(-static_cast<double>(cycle))
                         : o.mode == "exp_range" ? std::pow(o.gamma, static_cast<double>(index))
                                                 : 1;
    const double highest = o.max_lr.value_or(base_lr), lowest = o.base_lr.value_or(highest / 10);
    Rates rates{lowest + (highest - lowest) * height * scale};
    if (o.cycle_momentum)
      rates.momentum = o.max_momentum - (o.max_momentum - o.base_momentum) * height * scale;
    return rates;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, CyclicLR, "CyclicLR");

}  // namespace
}  // namespace cytra::training
