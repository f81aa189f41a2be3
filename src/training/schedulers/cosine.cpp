// CosineAnnealingLR with an optional linear warm-up. Source:
// torch.optim.lr_scheduler.CosineAnnealingLR (closed form), preceded by
// LinearLR(start_factor=warmup_start_factor, total_iters=warmup_steps).
#include <algorithm>
#include <cmath>

#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

class CosineAnnealingLR final : public Scheduler {
 public:
  struct Options {
    std::optional<int64_t> T_max;
    double eta_min = 0, warmup_start_factor = 0.1;
    int64_t warmup_steps = 0;
    template <class V>
    void visit(V& v) {
      v("T_max",
        T_max,
        "optimizer steps to the minimum, without the warm-up; null: the whole training");
      v("eta_min", eta_min, "lowest learning rate", 0, 1e9);
      v("warmup_steps", warmup_steps, "steps of linear warm-up before", 0, 1e12);
      v("warmup_start_factor",
        warmup_start_factor,
        "share of the learning rate that the warm-up begins with",
        0,
        1);
    }
  };
  explicit CosineAnnealingLR(const Options& options) : options_(options) {}

  double lr(double base_lr, int64_t step, int64_t total) const override {
    if (step < options_.warmup_steps) {
      const double part = static_cast<double>(step) / static_cast<double>(options_.warmup_steps);
      return base_lr * (options_.warmup_start_factor + (1 - options_.warmup_start_factor) * part);
    }
    const int64_t period =
        std::max<int64_t>(1, options_.T_max.value_or(total - options_.warmup_steps));
    const double angle = 3.14159265358979323846 *
                         static_cast<double>(step - options_.warmup_steps) /
                         static_cast<double>(period);
    return options_.eta_min + (base_lr - options_.eta_min) * (1 + std::cos(angle)) / 2;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, CosineAnnealingLR, "CosineAnnealingLR");

}  // namespace
}  // namespace cytra::training
