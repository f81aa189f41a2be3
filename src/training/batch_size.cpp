#include "training/batch_size.h"

#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "data/loader/batch.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/error.h"
#include "device/memory.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "perf/machine_load.h"
#include "perf/measure.h"
#include "training/precision.h"
#include "training/trainer/step.h"

namespace cytra::training {
namespace {

/// Whether twice as much does not fit beside the other memory of a training: the batch that is
/// loaded ahead, transforms of batches, the buckets of DDP; on a CPU, other programs.
bool is_double_too_much(int64_t peak, int64_t used, c10::Device device) {
  const auto free = static_cast<double>(device::free_memory(device));
  if (!device::has_own_memory(device)) return 2.0 * static_cast<double>(peak) > free / 2;
  return 2.0 * static_cast<double>(peak) > 0.85 * (static_cast<double>(used) + free);
}

/// The time of a forward and backward pass of one image.
double seconds_of_image(Task& task,
                        const data::Batch& batch,
                        const Precision& precision,
                        c10::Device device) {
  const auto pass = [&] { run_pass(task, batch, precision, device); };
  return perf::measure(pass, {0, 1}, device).best_s() /
         static_cast<double>(batch.tensors.begin()->second.size(0));
}

}  // namespace

data::Batch repeated(data::Batch batch, int64_t times) {
  for (auto& [key, tensor] : batch.tensors) {
    std::vector<int64_t> repeats(static_cast<std::size_t>(tensor.dim()), 1);
    repeats[0] = times;
    if (times > 1) tensor = tensor.repeat(repeats).contiguous(tensor.suggest_memory_format());
  }
  return batch;
}

void run_pass(Task& task,
              const data::Batch& batch,
              const Precision& precision,
              c10::Device device,
              bool detects_anomaly) {
  at::Tensor loss;
  {
    const Autocast autocast(precision, device.type());
    loss = task.training_step(batch);
  }
  backward(loss, detects_anomaly, 0, batch.ids);
}

int64_t find_batch_size(Task& task,
                        const data::Batch& one,
                        const Precision& precision,
                        int64_t most,
                        std::optional<int64_t> budget) {
  if (one.tensors.empty()) {
    log::warn("data.batch_size=AUTO: 1, as data.collate=list keeps the images apart");
    return 1;
  }
  nn::Model& model = task.model();
  const c10::Device device = model.parameters().front().device();
  const nn::KeepForwardState untouched(model);
  model.train();
  const perf::MachineLoad load;
  const auto can_double = [&] {
    const int64_t peak = device::peak_memory(device);
    return !is_double_too_much(peak, device::used_memory(device), device) &&
           (!budget || 2 * peak <= *budget);
  };
  const auto batch_of = [&](int64_t size) {
    data::Batch batch = one;
    cast(batch, precision.parameters);
    batch = repeated(std::move(batch), size);
    for (auto& [key, tensor] : batch.tensors) tensor = tensor.to(device);
    return batch;
  };
  device::reset_peak_memory(device);
  data::Batch best = batch_of(1);
  int64_t chosen = 1;
  seconds_of_image(task, best, precision, device);  // it warms up
  double seconds = seconds_of_image(task, best, precision, device);
  if (const int64_t peak = device::peak_memory(device); budget && peak > *budget) {
    throw ConfigError(
        "data.max_memory_mb={}: a step with one image takes {}; expected as much or more, smaller "
        "patches, or model.gradient_checkpointing=true",
        *budget / 1'000'000,
        format_bytes(static_cast<double>(peak)));
  }
  int no_better = 0;  // sizes in a row
  for (int64_t size = 2; size <= most && no_better < 2 && can_double(); size *= 2) {
    device::reset_peak_memory(device);
    data::Batch batch;
    double last = 0;
    const auto verdict = device::if_it_fits([&] {
      batch = batch_of(size);
      seconds_of_image(task, batch, precision, device);  // it warms up
      return perf::time_in_turn(
          [&] { return seconds = seconds_of_image(task, best, precision, device); },
          [&] { return last = seconds_of_image(task, batch, precision, device); });
    });
    if (!verdict) break;
    log::debug("data.batch_size={}: {}", size, verdict->text());
    no_better = verdict->is_gain ? 0 : no_better + 1;
    if (!verdict->is_gain) continue;
    chosen = size;
    best = std::move(batch);
    seconds = last;
  }
  model.zero_grad();
  device::empty_cache(device);
  load.report("trying batch sizes");
  log::info("data.batch_size=AUTO: {} ({:.1f} images/s)", chosen, 1 / seconds);
  return chosen;
}

}  // namespace cytra::training
