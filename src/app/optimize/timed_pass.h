#pragma once
// Passes of a training's first batches, ready to be timed.
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "app/optimize/search.h"
#include "app/setup/train_config.h"
#include "data/loader/batch.h"

namespace cytra::app {

/// The first batches of training and validation, on a device.
struct FirstBatches {
  std::optional<data::Batch> training, validation;  // validation: only if asked for

  /// Loads the batches. Throws: DataError where the training set has no batch.
  FirstBatches(const TrainConfig& config, c10::Device device, bool with_validation);
  /// The keys and sizes of the batches as text.
  std::string text() const;
};

/// A pass that is run once per call; the call returns its seconds.
using TimedPass = std::function<double()>;
/// Makes a warmed-up pass of its own: forward and backward of the batch, or its validation.
using MakePass = std::function<TimedPass(
    const TrainConfig& config, const data::Batch& batch, bool is_validation)>;

/// The pass of a configuration for a Search: `batches` are those of the configuration.
TimedRun timed_run(const MakePass& make,
                   const TrainConfig& config,
                   const FirstBatches& batches,
                   Aim aim);

/// Passes that really run. Several may exist at a time: each sets the process up for its
/// configuration before it begins. The next Setup must set threads and random numbers again.
MakePass real_passes(c10::Device device);

}  // namespace cytra::app
