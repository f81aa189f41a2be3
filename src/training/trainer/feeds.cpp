#include "training/trainer/feeds.h"

#include "base/error.h"

namespace cytra::training {

void Feeds::start_epoch(int64_t epoch, int64_t first, bool more) {
  ahead.reset();
  last.reset();
  train.start_epoch(epoch, first, more);
}

data::Batch Feeds::at(int64_t place) {
  if (!ahead) ahead = train.next();
  if (ahead) last = ahead;
  if (!last) throw DataError("none of this process's images could be loaded");
  if (ahead && ahead->number <= place) ahead.reset();
  data::Batch batch = *last;
  batch.number = place;
  return batch;
}

}  // namespace cytra::training
