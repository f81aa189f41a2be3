#pragma once
// Passes of a training's first batches, ready to be timed.
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "app/setup/train_config.h"
#include "data/batch.h"

namespace cytra::app {

/// The first batches of training and validation, on the device.
struct FirstBatches {
  std::optional<data::Batch> training, validation;  // none of the latter where it is not asked for

  /// Throws: DataError where the training set has no batch.
  FirstBatches(const TrainConfig& config, c10::Device device, bool with_validation);
  /// Keys and sizes.
  std::string text() const;
};

/// Does the work once, and returns its seconds.
using TimedPass = std::function<double()>;
/// A pass of its own, warmed up: forward and backward of the batch, or its validation.
using MakePass = std::function<TimedPass(
    const TrainConfig& config, const data::Batch& batch, bool is_validation)>;

/// Passes that are made and timed. Several may be there at a time: each sets the process up for its
/// configuration before it begins. Threads and random numbers are for the next Setup to set.
MakePass real_passes(c10::Device device);

}  // namespace cytra::app
