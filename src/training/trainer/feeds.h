#pragma once
#include <optional>

#include "base/error.h"
#include "data/loader/device_feed.h"

namespace cytra::training {

/// Where a training's batches come from.
struct Feeds {
  data::DeviceFeed train, valid;
  int64_t valid_batches;
  // What at() holds: the loader's next batch, when its turn has not come yet, and the newest one.
  std::optional<data::Batch> ahead = {}, last = {};

  /// Starts the training batches of an epoch: see data::DataLoader::start_epoch().
  void start_epoch(int64_t epoch, int64_t first, bool more) {
    ahead.reset();
    last.reset();
    train.start_epoch(epoch, first, more);
  }
  /// The training batch at `place` of the epoch, for processes that do equally many steps: where it
  /// is missing, as none of its images could be loaded, the next one is taken twice; at the end the
  /// one before. Throws: DataError when there is none at all.
  data::Batch at(int64_t place) {
    if (!ahead) ahead = train.next();
    if (ahead) last = ahead;
    if (!last) throw DataError("none of this process's images could be loaded");
    if (ahead && ahead->number <= place) ahead.reset();
    data::Batch batch = *last;
    batch.number = place;
    return batch;
  }
};

}  // namespace cytra::training
