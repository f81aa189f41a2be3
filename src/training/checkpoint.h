#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "training/callback.h"

namespace cytra::training {

class GradScaler;
class Optimizer;
struct Scheduler;

/// The objects of a training whose state a checkpoint holds.
struct CheckpointedObjects {
  Task& task;
  Optimizer& optimizer;
  Scheduler& scheduler;
  GradScaler& scaler;
  const std::vector<std::shared_ptr<Callback>>& callbacks;
};

/// A training's whole state on the host, complete in itself. The tensors: weights "model.<name>",
/// "optimizer.<state>", "scaler.<state>", "callback.<name>.<state>". The metadata: "state" as
/// JSON, "config" as YAML, "cytra_version", "cytra_format" (nn/checkpoint_format.h).
struct Snapshot {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Copies the whole state, into the memory of `reused` (an earlier snapshot) where it fits.
Snapshot take_snapshot(const CheckpointedObjects& objects,
                       const TrainState& state,
                       const config::Node& config,
                       Snapshot reused = {});

/// One safetensors file with a checksum, written atomically and flushed to the disk. Throws: as
/// AtomicFile.
void write_snapshot(const std::string& path, const Snapshot& snapshot);

/// Restores everything but the place of the files. Loading never executes code.
/// Throws: DataError when the file is damaged, no checkpoint, or does not fit; then the training is
/// as it was.
TrainState load_checkpoint(const std::string& path,
                           const CheckpointedObjects& objects,
                           bool strict);

}  // namespace cytra::training
