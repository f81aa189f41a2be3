#pragma once
// The settings that change how fast an experiment trains or validates, with their values that are
// worth a trial; and changes of an experiment as overrides and command lines.
#include <string>
#include <vector>

#include "app/optimize/bottleneck.h"
#include "app/run/entry.h"

namespace cytra::app {

namespace key {
constexpr const char *kBatch = "data.batch_size", *kWorkers = "data.num_workers",
                     *kPrefetch = "data.prefetch_factor", *kLayout = "model.channels_last",
                     *kThreads = "performance.num_threads",
                     *kAlgorithms = "performance.enable_cudnn_benchmark",
                     *kWindows = "task.inference_args.sw_batch_size",
                     *kPrecision = "trainer.precision";
}  // namespace key

/// What a setting speeds up.
enum class Aim { loading, training, validation };
Aim aim_of(const std::string& key);

/// The values of a key above: what it is now, where the experiment's facts are these, and then
/// those that are worth a trial, in this order.
std::vector<config::Node> values_of(const std::string& key, const Facts& facts);
std::vector<config::Node> others_of(const std::string& key, const Facts& facts);  // to try

/// The changes with one more, which replaces an earlier one of its key.
Changes with(Changes changes, const std::string& key, config::Node value);

/// "data.num_workers=4".
std::string text_of(const Change& change);
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
