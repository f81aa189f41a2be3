// Schedules that multiply the learning rate. Source: the classes of that name in
// torch.optim.lr_scheduler, in closed form.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

double real(int64_t number) {
  return static_cast<double>(number);
}

/// A smaller learning rate for the first total_iters.
class ConstantLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    double factor = 1.0 / 3;
    std::optional<int64_t> total_iters = 5;
    template <class V>
    void visit(V& v) {
      v("factor", factor, "factor of the learning rate, until total_iters", 0, 1);
      v("total_iters", total_iters, "steps with the factor; null: the whole training", 0, 1e12);
      ScheduleOptions::visit(v);
    }
  };
  explicit ConstantLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const override {
    const bool is_over = options_.total_iters && index >= *options_.total_iters;
    return {is_over ? base_lr : base_lr * options_.factor};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, ConstantLR, "ConstantLR");

class LinearLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    double start_factor = 1.0 / 3, end_factor = 1;
    std::optional<int64_t> total_iters = 5;
    template <class V>
    void visit(V& v) {
      v("start_factor", start_factor, "factor of the learning rate at the beginning", 0, 1);
      v("end_factor", end_factor, "factor of the learning rate from total_iters on", 0, 1);
      v("total_iters", total_iters, "steps to end_factor; null: the whole training", 1, 1e12);
      ScheduleOptions::visit(v);
    }
  };
  explicit LinearLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t total) const override {
    const int64_t end = whole_if_null(options_.total_iters, total, "total_iters");
    const double way = real(std::min(index, end)) / real(end);
    return {base_lr *
            (options_.start_factor + (options_.end_factor - options_.start_factor) * way)};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, LinearLR, "LinearLR");

class ExponentialLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    double gamma = 1;
    template <class V>
    void visit(V& v) {
      v("gamma", gamma, "factor per step", 0, 1);
      ScheduleOptions::visit(v);
    }
  };
  explicit ExponentialLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const override {
    return {base_lr * std::pow(options_.gamma, real(index))};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, ExponentialLR, "ExponentialLR");

class PolynomialLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    std::optional<int64_t> total_iters = 5;
    double power = 1;
    template <class V>
    void visit(V& v) {
      v("total_iters", total_iters, "steps to zero; null: the whole training", 1, 1e12);
      v("power", power, "power of the share of steps that is left; nnU-Net takes 0.9", 0, 1e3);
      ScheduleOptions::visit(v);
    }
  };
  explicit PolynomialLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t total) const override {
    const int64_t end = whole_if_null(options_.total_iters, total, "total_iters");
    return {base_lr * std::pow(1 - real(std::min(index, end)) / real(end), options_.power)};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, PolynomialLR, "PolynomialLR");

class StepLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    int64_t step_size = 1;
    double gamma = 0.1;
    template <class V>
    void visit(V& v) {
      v("step_size", step_size, "steps from one decay to the next", config::required);
      v("gamma", gamma, "factor of a decay", 0, 1);
      ScheduleOptions::visit(v);
    }
    void check() const {
      if (step_size < 1) throw ConfigError("step_size: expected 1 or more");
    }
  };
  explicit StepLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const override {
    return {base_lr * std::pow(options_.gamma, real(index / options_.step_size))};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, StepLR, "StepLR");

class MultiStepLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    std::vector<int64_t> milestones;
    double gamma = 0.1;
    template <class V>
    void visit(V& v) {
      v("milestones", milestones, "steps at which the rate decays", config::required);
      v("gamma", gamma, "factor of a decay", 0, 1);
      ScheduleOptions::visit(v);
    }
  };
  explicit MultiStepLR(const Options& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t /*total*/) const override {
    const auto passed = std::count_if(options_.milestones.begin(),
                                      options_.milestones.end(),
                                      [&](int64_t milestone) { return milestone <= index; });
    return {base_lr * std::pow(options_.gamma, real(passed))};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, MultiStepLR, "MultiStepLR");

}  // namespace
}  // namespace cytra::training
