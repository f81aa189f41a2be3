#include "training/feeds.h"

#include <algorithm>

#include <ATen/ATen.h>

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

void cast(data::Batch& batch, at::ScalarType type) {
  if (type == at::kFloat) return;
  const auto change = [type](at::Tensor& tensor) {
    if (tensor.is_floating_point()) tensor = tensor.to(type);
  };
  for (auto& [key, tensor] : batch.tensors) change(tensor);
  for (auto& [key, list] : batch.lists) std::for_each(list.begin(), list.end(), change);
}

}  // namespace cytra::training
