#include "inference/predictor/object_slabs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/labels/components.h"

namespace cytra::inference {

ObjectSlabs::ObjectSlabs(PostprocessSteps steps, const io::Geometry& geometry, int64_t most_rows)
    : steps_(std::move(steps)), geometry_(geometry), most_rows_(most_rows) {}

at::Tensor ObjectSlabs::add(const at::Tensor& rows) {
  const at::Tensor labels = rows.to(at::kInt), none = at::zeros(rows.sizes(), at::kInt);
  pending_ = pending_.defined() ? at::cat({pending_, labels}) : labels.clone();
  objects_ = objects_.defined() ? at::cat({objects_, none}) : none;
  int64_t ready = number_ended(false);
  if (pending_.size(0) - ready > most_rows_) ready = number_ended(true);
  return take(ready);
}

at::Tensor ObjectSlabs::finish() {
  return pending_.defined() ? take(number_ended(true)) : at::zeros({0}, at::kInt);
}

/// Makes objects of labels that do not reach the last row. Returns how many rows hold only such
/// objects.
int64_t ObjectSlabs::number_ended(bool all) {
  const int64_t rows = pending_.size(0);
  if (rows == 0) return 0;
  const ops::Components found = ops::connected_components(pending_.ne(0), /*connectivity=*/0);
  const int64_t per_row = pending_.numel() / rows;
  const int32_t* component = found.labels.const_data_ptr<int32_t>();
  std::vector<bool> goes_on(found.sizes.size());
  for (int64_t i = (rows - 1) * per_row; i < rows * per_row && !all; ++i)
    goes_on[static_cast<std::size_t>(component[i])] = true;
  goes_on[0] = false;
  int64_t ready = rows;
  at::Tensor ended = at::empty(pending_.sizes(), at::kBool);
  bool* has_ended = ended.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < rows * per_row; ++i) {
    const bool is_open = goes_on[static_cast<std::size_t>(component[i])];
    if (is_open) ready = std::min(ready, i / per_row);
    has_ended[i] = component[i] != 0 && !is_open;
  }
  if (!ended.any().item<bool>()) return ready;
  Result result;
  const at::Tensor ones = pending_.masked_fill(ended.logical_not(), 0);
  // For an object that begins in the first row kept back, the row before is background.
  const at::Tensor before = at::zeros_like(ones.narrow(0, 0, is_first_ ? 0 : 1));
  result.values = at::cat({before, ones}).unsqueeze(0);
  result.is_labels = true;
  result.geometry = geometry_;
  apply_all(steps_, result);
  const at::Tensor objects = result.values[0].narrow(0, before.size(0), rows).to(at::kInt);
  const at::Tensor is_object = objects.gt(0);
  const auto most = objects.max().item<int64_t>();
  if (count_ + most > INT32_MAX) throw DataError("more than 2147483647 objects");
  objects_ = at::where(is_object, objects + static_cast<int32_t>(count_), objects_);
  pending_.masked_fill_(ended, 0);
  count_ += most;
  return ready;
}

at::Tensor ObjectSlabs::take(int64_t rows) {
  const int64_t rest = pending_.size(0) - rows;
  is_first_ = is_first_ && rows == 0;
  at::Tensor taken = objects_.narrow(0, 0, rows).clone();
  pending_ = pending_.narrow(0, rows, rest).clone();
  objects_ = objects_.narrow(0, rows, rest).clone();
  return taken;
}

}  // namespace cytra::inference
