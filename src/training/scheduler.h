#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cytra::training {

/// What an optimizer's step takes from the schedule.
struct Rates {
  double lr;
  std::optional<double> momentum = {};  // null: the optimizer's own
};

/// A position in the whole training: both counts from 0.
struct Position {
  int64_t step, total_steps;    // optimizer steps
  int64_t epoch, total_epochs;  // total_epochs -1: not known, max_time ends the training
};

/// The learning rate as a function of the position, so that a resumed training has the same rates.
/// Registered under torch.optim.lr_scheduler's class names.
struct Scheduler {
  static constexpr const char* kKind = "scheduler";
  virtual ~Scheduler() = default;
  /// The rates for the next step. Throws: ConfigError where the schedule needs the length of the
  /// training and the position does not have it.
  virtual Rates at(double base_lr, const Position& position) const = 0;
  /// Takes the metrics after every validation. Throws: ConfigError when a metric is missing.
  virtual void on_metrics(const std::map<std::string, double>& /*metrics*/) {}
  /// What on_metrics() left, finite numbers, for a checkpoint.
  virtual std::map<std::string, double> state() const { return {}; }
  /// Restores what state() gave; a value that is missing there is as at the start.
  virtual void load(const std::map<std::string, double>& /*state*/) {}
};

/// Keys that every scheduler takes.
struct WarmupOptions {
  int64_t warmup_steps = 0;
  double warmup_start_factor = 0.1;
  std::string warmup = "linear";
  void visit(auto& v) {
    v("warmup_steps", warmup_steps, "optimizer steps of warm-up before", 0, 1e12);
    v("warmup_start_factor",
      warmup_start_factor,
      "share of the learning rate that the warm-up begins with",
      0,
      1);
    v("warmup",
      warmup,
      "how the warm-up rises to the full learning rate",
      {"linear", "cosine", "constant"});
  }
  /// The share of the learning rate at a step: s + (1 - s) p at the part p of the way for linear,
  /// s + (1 - s) (1 - cos(pi p)) / 2 for cosine, s for constant; 1 after the warm-up. Source:
  /// torch's LinearLR and ConstantLR for linear and constant.
  double factor(int64_t step) const;
};

/// Keys that every scheduler takes whose rates follow from the position alone. `interval` and
/// `frequency` are those of Lightning's lr_scheduler_config.
struct ScheduleOptions : WarmupOptions {
  std::string interval = "step";
  int64_t frequency = 1;
  void visit(auto& v) {
    v("interval", interval, "what the schedule counts", {"step", "epoch"});
    v("frequency", frequency, "steps or epochs of training that count as one", 1, 1e12);
    WarmupOptions::visit(v);
  }
};

/// A closed form. A schedule per step begins after the warm-up; one per epoch counts all epochs,
/// and the warm-up lowers its first steps.
class Schedule : public Scheduler {
 public:
  Rates at(double base_lr, const Position& position) const final;
  /// `index` counts from 0 what the schedule counts; `total` is the number of them in the whole
  /// training, at least 1, or -1 when it is not known.
  virtual Rates value(double base_lr, int64_t index, int64_t total) const = 0;

 protected:
  /// Throws: ConfigError.
  explicit Schedule(const ScheduleOptions& options);

 private:
  ScheduleOptions options_;
};

/// `option`, or where it is null, the whole training. Throws: ConfigError when that is not known.
int64_t whole_if_null(const std::optional<int64_t>& option, int64_t total, const char* name);

}  // namespace cytra::training
