// Schedules along a cosine. Source: torch.optim.lr_scheduler.CosineAnnealingLR and
// CosineAnnealingWarmRestarts, monai.optimizers.WarmupCosineSchedule, in closed form.
#include <algorithm>
#include <cmath>

#include "training/schedulers/closed_form.h"

namespace cytra::training {
namespace {

/// Half a cosine: it falls from 1 at 0 to 0 at 1.
double half_cosine(double way) {
  return (1 + std::cos(M_PI * way)) / 2;
}
double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// The rate falls to eta_min in T_max steps; beyond T_max it rises again as it fell, with a period
/// of 2 T_max, as torch's does.
struct CosineAnnealingLR : ScheduleOptions {
  std::optional<int64_t> T_max;
  double eta_min = 0;
  void visit(auto& v) {
    v("T_max",
      T_max,
      "steps to the minimum, without the warm-up; null: the whole training",
      1,
      1e12);
    v("eta_min", eta_min, "lowest learning rate", 0, 1e9);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t total) const {
    const double way = ratio(index, whole_if_null(T_max, total, "T_max"));
    return {eta_min + (base_lr - eta_min) * half_cosine(way)};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<CosineAnnealingLR>, "CosineAnnealingLR");

/// The rate falls to eta_min again and again: in T_0 steps, then in T_mult times the period
/// before. Source: Loshchilov & Hutter 2017, SGDR.
struct CosineAnnealingWarmRestarts : ScheduleOptions {
  int64_t T_0 = 10, T_mult = 1;
  double eta_min = 0;
  void visit(auto& v) {
    v("T_0", T_0, "steps of the first period", 1, 1e12);
    v("T_mult", T_mult, "length of a period divided by that of the one before", 1, 1e6);
    v("eta_min", eta_min, "lowest learning rate", 0, 1e9);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const {
    int64_t period = T_0;
    if (T_mult == 1) index %= period;
    for (; index >= period; period *= T_mult) index -= period;
    return {eta_min + (base_lr - eta_min) * half_cosine(ratio(index, period))};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<CosineAnnealingWarmRestarts>, "CosineAnnealingWarmRestarts");

/// MONAI's schedule: t_total counts the warm-up, too, end_lr is the lowest rate of the curve, and
/// there may be several cycles.
struct WarmupCosineSchedule : ScheduleOptions {
  std::optional<int64_t> t_total;
  double end_lr = 0, cycles = 0.5;
  WarmupCosineSchedule() { warmup_start_factor = 0; }
  void visit(auto& v) {
    v("t_total", t_total, "steps with the warm-up; null: the whole training", 1, 1e12);
    v("end_lr", end_lr, "lowest learning rate", 0, 1e9);
    v("cycles", cycles, "cycles of the cosine; 0.5: down to its minimum", 0, 1e6);
    v("warmup_steps", warmup_steps, "optimizer steps of linear warm-up before", 0, 1e12);
    v("warmup_multiplier",
      warmup_start_factor,
      "share of the learning rate that the warm-up begins with",
      0,
      1);
  }
  void check() { warmup_steps = std::min(warmup_steps, t_total.value_or(warmup_steps)); }
  Rates value(double base_lr, int64_t index, int64_t total) const {
    total = t_total ? std::max<int64_t>(1, *t_total - warmup_steps)
                    : whole_if_null(std::nullopt, total, "t_total");
    return {std::max(end_lr, base_lr * half_cosine(2 * cycles * ratio(index, total)))};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<WarmupCosineSchedule>, "WarmupCosineSchedule");

}  // namespace
}  // namespace cytra::training
