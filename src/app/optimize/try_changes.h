#pragma once
// Turns the trials of `optimize` into gains, overrides and command lines.
#include <optional>
#include <string>
#include <vector>

#include "app/optimize/measure_training.h"
#include "perf/measure.h"

namespace cytra::app {

/// The result of a change to the experiment.
struct Tried {
  perf::Verdict verdict;       // on the time of an image
  double loss_difference = 0;  // relative, of the mean of the first steps; 0: the batches differ
  Trials::Figures measured;    // the last run with it
};
enum class Aim { training, validation };  // whose time is compared

/// Runs trainings of `before` and `after` in turn (perf/measure.h), each for `seconds`. None where
/// `after` does not fit into memory. Throws: as measure().
std::optional<Tried> try_changes(const Trials& trials,
                                 const Changes& before,
                                 const Changes& after,
                                 double seconds,
                                 Aim aim = Aim::training);

/// Writes changes as overrides: "data.num_workers=4 callbacks.saving=null"; ++ where the key is
/// new.
std::string text_of(const cli::Run& run, const Changes& changes);
/// The command that trains the experiment of `optimize` with changes, ready to paste.
/// `performance`: the choice in the group of that name; "": as it is.
std::string train_command(const cli::Run& run,
                          const Changes& changes,
                          const std::string& performance = "");
/// The overrides of the experiment, without those of `optimize` itself.
std::vector<std::string> experiment_overrides(const cli::Run& run,
                                              const std::string& performance = "");

}  // namespace cytra::app
