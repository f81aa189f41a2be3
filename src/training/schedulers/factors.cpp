// Schedules that multiply the learning rate. Source: the classes of that name in
// torch.optim.lr_scheduler, in closed form.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "training/schedulers/closed_form.h"

namespace cytra::training {
namespace {

double real(int64_t number) {
  return static_cast<double>(number);
}

/// A smaller learning rate for the first total_iters.
struct ConstantLR : ScheduleOptions {
  double factor = 1.0 / 3;
  std::optional<int64_t> total_iters = 5;
  void visit(auto& v) {
    v("factor", factor, "factor of the learning rate, until total_iters", 0, 1);
    v("total_iters", total_iters, "steps with the factor; null: the whole training", 0, 1e12);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const {
    const bool is_over = total_iters && index >= *total_iters;
    return {is_over ? base_lr : base_lr * factor};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<ConstantLR>, "ConstantLR");

struct LinearLR : ScheduleOptions {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::optional<int64_t> total_iters = 5;
  void visit(auto& v) {
    v("start_factor", start_factor, "factor of the learning rate at the beginning", 0, 1);
    v("end_factor", end_factor, "factor of the learning rate from total_iters on", 0, 1);
    v("total_iters", total_iters, "steps to end_factor; null: the whole training", 1, 1e12);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t total) const {
    const int64_t end = whole_if_null(total_iters, total, "total_iters");
    const double way = real(std::min(index, end)) / real(end);
    return {base_lr * (start_factor + (end_factor - start_factor) * way)};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<LinearLR>, "LinearLR");

struct ExponentialLR : ScheduleOptions {
  double gamma = 1;
  void visit(auto& v) {
    v("gamma", gamma, "factor per step", 0, 1);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const {
    return {base_lr * std::pow(gamma, real(index))};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<ExponentialLR>, "ExponentialLR");

struct PolynomialLR : ScheduleOptions {
  std::optional<int64_t> total_iters = 5;
  double power = 1;
  void visit(auto& v) {
    v("total_iters", total_iters, "steps to zero; null: the whole training", 1, 1e12);
    v("power", power, "power of the share of steps that is left; nnU-Net takes 0.9", 0, 1e3);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t total) const {
    const int64_t end = whole_if_null(total_iters, total, "total_iters");
    return {base_lr * std::pow(1 - real(std::min(index, end)) / real(end), power)};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<PolynomialLR>, "PolynomialLR");

struct StepLR : ScheduleOptions {
  int64_t step_size = 1;
  double gamma = 0.1;
  void visit(auto& v) {
    v("step_size", step_size, "steps from one decay to the next", config::required);
    v("gamma", gamma, "factor of a decay", 0, 1);
    ScheduleOptions::visit(v);
  }
  void check() const {
    if (step_size < 1) throw ConfigError("step_size: expected 1 or more");
  }
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const {
    return {base_lr * std::pow(gamma, real(index / step_size))};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<StepLR>, "StepLR");

struct MultiStepLR : ScheduleOptions {
  std::vector<int64_t> milestones;
  double gamma = 0.1;
  void visit(auto& v) {
    v("milestones", milestones, "steps at which the rate decays", config::required);
    v("gamma", gamma, "factor of a decay", 0, 1);
    ScheduleOptions::visit(v);
  }
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const {
    const auto passed =
        std::ranges::count_if(milestones, [&](int64_t milestone) { return milestone <= index; });
    return {base_lr * std::pow(gamma, real(passed))};
  }
};
CYTRA_REGISTER(Scheduler, ClosedForm<MultiStepLR>, "MultiStepLR");

}  // namespace
}  // namespace cytra::training
