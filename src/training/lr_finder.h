#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/scheduler.h"

namespace cytra::training {

/// Keys of lightning's Tuner.lr_find.
struct LrFinderOptions {
  double min_lr = 1e-8, max_lr = 1;
  int64_t num_training = 100;
  std::string mode = "exponential";
  std::optional<double> early_stop_threshold = 4;
  void visit(auto& v) {
    v("min_lr", min_lr, "learning rate of the first step", 1e-30, 1e9);
    v("max_lr", max_lr, "learning rate of the last step", 1e-30, 1e9);
    v("num_training", num_training, "steps between them", 14, 1e9);
    v("mode", mode, "how the learning rate grows", {"exponential", "linear"});
    v("early_stop_threshold",
      early_stop_threshold,
      "stop when the loss is this many times the best; null: never",
      0,
      1e9);
  }
  void check() const;  // Throws: ConfigError
};

/// A range test (Smith 2017, "Cyclical learning rates"): the learning rate grows step by step, and
/// the losses show which one to train with. Source: lightning's tuner/lr_finder.py.
class LrFinder final : public Scheduler {
 public:
  struct Point {
    double lr, loss, smoothed;
  };
  explicit LrFinder(LrFinderOptions options) : options_(std::move(options)) {}

  /// The rates: min_lr, then the 2nd, 3rd, ... last of num_training equal parts of the way to
  /// max_lr.
  Rates at(double base_lr, const Position& position) const override;
  /// Adds the loss of the step that had this rate. False: the losses diverge, or are not finite
  /// (then no point is added); stop.
  bool add(double lr, double loss);
  /// The points: a running mean that forgets (0.98), with Lightning's correction of its beginning.
  const std::vector<Point>& points() const { return points_; }
  /// The point where the smoothed loss falls fastest over the learning rate, but for the first 10
  /// points and the last; none: too few points.
  std::optional<std::size_t> suggestion() const;

 private:
  LrFinderOptions options_;
  std::vector<Point> points_;
  double mean_ = 0, best_ = 0;
};

/// The points as a picture (SVG): losses in grey, smoothed, and the suggestion.
std::string plot_svg(const LrFinder& finder, bool is_log);

}  // namespace cytra::training
