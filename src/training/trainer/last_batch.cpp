#include "training/trainer/last_batch.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/strings.h"
#include "nn/forward_state.h"
#include "nn/model.h"

namespace cytra::training {

void try_one_image(Task& task, data::Batch batch, const Precision& precision) {
  nn::Model& model = task.model();
  const auto buffers = model.named_buffers().keys();
  const bool has_norm = std::ranges::any_of(
      buffers, [](const std::string& name) { return ends_with(name, "running_mean"); });
  if (!has_norm || batch.ids.size() < 2 || batch.tensors.empty()) return;
  for (auto& [key, rows] : batch.tensors) rows = rows.narrow(0, 0, 1);
  batch.ids.resize(1);
  batch.geometries.resize(1);
  batch.keys.resize(1);
  const at::NoGradGuard no_grad;
  const nn::KeepForwardState untouched(model);
  const Autocast autocast(precision, batch.tensors.begin()->second.device().type());
  task.training_step(batch);
}

}  // namespace cytra::training
