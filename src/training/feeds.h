#pragma once
// The batches of a training. For the trainer alone.
#include <optional>

#include <c10/core/ScalarType.h>

#include "data/device_feed.h"

namespace cytra::training {

struct Feeds {
  data::DeviceFeed train, valid;
  int64_t valid_batches;
  std::optional<data::Batch> ahead = {}, last = {};

  void start_epoch(int64_t epoch, int64_t first, bool more);
  /// The training batch at `place` of the epoch, for processes that do equally many steps: where it
  /// is missing, as none of its images could be loaded, the next one is taken twice; at the end the
  /// one before. Throws: DataError when there is none at all.
  data::Batch at(int64_t place);
};

/// Images in the type that the weights have.
void cast(data::Batch& batch, at::ScalarType type);

}  // namespace cytra::training
