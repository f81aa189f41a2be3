#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cytra::training {

struct Rates {
  double lr;
  std::optional<double> momentum;
};
struct Position {
  int64_t step, total_steps, epoch, total_epochs;
};

struct Scheduler {
  static constexpr const char* kKind = "scheduler";
  virtual ~Scheduler() = default;
  virtual double lr(double base_lr, int64_t step, int64_t total) const = 0;
  Rates at(double base_lr, const Position& at) const { return {lr(base_lr, at.step, at.total_steps), {}}; }
  virtual void on_metrics(const std::map<std::string, double>&) {}
  virtual std::map<std::string, double> state() const { return {}; }
  virtual void load(const std::map<std::string, double>&) {}
};

}  // namespace cytra::training
