#pragma once
// The search for faster settings: each is timed in turn with the best so far, and kept where it is
// a gain.
#include <functional>
#include <string>

#include "app/optimize/measure_training.h"
#include "app/optimize/settings.h"
#include "perf/measure.h"

namespace cytra::app {

/// Runs the experiment, or a part of it, once per call.
using TimedRun = std::function<Figures()>;
/// Makes what runs the experiment with changes, warmed up.
using MakeRun = std::function<TimedRun(const Changes& changes, Aim aim)>;

/// Trainings of `seconds`.
MakeRun runs_of(const Trials& trials, double seconds);

/// The result of changes to the experiment.
struct Tried {
  perf::Verdict verdict;       // on the time of an image
  double loss_difference = 0;  // relative, of the mean of the first steps; 0: the batches differ
  Figures measured;            // the last run with them
  bool fits = true;            // into memory; else nothing is known

  std::string text() const { return fits ? verdict.text() : "does not fit into memory"; }
};

class Search {
 public:
  /// `start`: the changes that it begins with.
  explicit Search(MakeRun make, Changes start = {})
      : make_(std::move(make)), best_(std::move(start)) {}

  /// Tries a value in addition to the best so far, and keeps it where it is a gain.
  Tried take(const std::string& key, const config::Node& value);
  /// Compares the experiment with changes. Nothing is kept.
  Tried compare(const Changes& before, const Changes& after, Aim aim = Aim::training) const;
  /// Runs the best so far.
  void run(Aim aim) { newest_ = best_run(aim)(); }

  const Changes& best() const { return best_; }
  const Figures& newest() const { return newest_; }  // of the best

 private:
  const TimedRun& best_run(Aim aim);

  MakeRun make_;
  Changes best_;
  TimedRun best_run_;  // for an aim; made when it is needed
  Aim aim_ = Aim::training;
  Figures newest_;
};

/// Checks choices that were kept: whether the experiment is slower with them than without, on this
/// machine now. Says why they are dropped; "" where they hold. `without`: each key that was chosen
/// with its other value.
std::string why_dropped(const MakeRun& make, const Changes& without, const Changes& kept);

}  // namespace cytra::app
