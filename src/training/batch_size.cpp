#include "training/batch_size.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <ATen/ATen.h>

#include "base/log.h"
#include "data/batch.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/device.h"
#include "perf/device_memory.h"
#include "training/precision.h"

namespace cytra::training {
namespace {

constexpr double kTie = 0.95;  // of the best rate: as good, with less memory

/// Whether twice as much fits beside what a training takes besides: the batch that is loaded
/// ahead, transforms of batches, the buckets of DDP; on a CPU, other programs.
bool is_double_too_much(int64_t peak, int64_t used, c10::Device device) {
  const auto free = static_cast<double>(perf::free_memory(device));
  if (device.is_cpu()) return 2.0 * static_cast<double>(peak) > free / 2;
  return 2.0 * static_cast<double>(peak) > 0.85 * (static_cast<double>(used) + free);
}

data::Batch repeated(const data::Batch& one,
                     int64_t times,
                     const Precision& precision,
                     c10::Device device) {
  data::Batch batch = one;
  cast(batch, precision.parameters);
  for (auto& [key, tensor] : batch.tensors) {
    std::vector<int64_t> repeats(static_cast<std::size_t>(tensor.dim()), 1);
    repeats[0] = times;
    tensor = tensor.repeat(repeats).contiguous(tensor.suggest_memory_format()).to(device);
  }
  return batch;
}

/// Images per second.
double rate_of(Task& task,
               const data::Batch& batch,
               const Precision& precision,
               c10::Device device) {
  double best = 0;
  for (int run = 0; run < 3; ++run) {  // the first one warms up
    perf::synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor loss;
    {
      const Autocast autocast(precision, device.type());
      loss = task.training_step(batch);
    }
    loss.backward();
    perf::synchronize(device);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const auto images = static_cast<double>(batch.tensors.begin()->second.size(0));
    if (run > 0) best = std::max(best, images / seconds.count());
  }
  return best;
}

}  // namespace

int64_t find_batch_size(Task& task,
                        const data::Batch& one,
                        const Precision& precision,
                        int64_t most) {
  nn::Model& model = task.model();
  const c10::Device device = model.parameters().front().device();
  const nn::KeepForwardState untouched(model);
  model.train();
  std::vector<std::pair<int64_t, double>> rates;
  double best = 0;
  int no_better = 0;  // sizes in a row
  for (int64_t size = 1; size <= most && no_better < 2; size *= 2) {
    perf::reset_peak_memory(device);
    double rate = 0;
    try {
      rate = rate_of(task, repeated(one, size, precision, device), precision, device);
    } catch (const std::exception& error) {
      if (size == 1 || !perf::is_out_of_memory(error)) throw;
      break;
    }
    log::debug("data.batch_size={}: {:.1f} images/s", size, rate);
    rates.emplace_back(size, rate);
    no_better = rate * kTie < best ? no_better + 1 : 0;
    best = std::max(best, rate);
    if (is_double_too_much(perf::peak_memory(device), perf::used_memory(device), device)) break;
  }
  model.zero_grad();
  perf::empty_cache(device);
  const auto chosen = std::find_if(
      rates.begin(), rates.end(), [&](const auto& entry) { return entry.second >= kTie * best; });
  log::info("data.batch_size=AUTO: {} ({:.1f} images/s)", chosen->first, chosen->second);
  return chosen->first;
}

}  // namespace cytra::training
