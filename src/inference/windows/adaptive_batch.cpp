// Part of inference/windows/window_run.h: batches that fit the device.
#include <algorithm>

#include <ATen/ATen.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "device/error.h"
#include "device/memory.h"
#include "inference/windows/window_run.h"

namespace cytra::inference {
namespace {

constexpr int64_t kPassesUntilMore = 64;  // that fit, before twice as many windows are tried

}  // namespace

int64_t AdaptiveBatch::now(int64_t wanted) {
  const std::lock_guard lock(mutex_);
  return std::min(wanted, limit_);
}

void AdaptiveBatch::fits(int64_t count) {
  const std::lock_guard lock(mutex_);
  if (limit_ == INT64_MAX || count < limit_ || ++passes_ < kPassesUntilMore) return;
  limit_ *= 2;
  passes_ = 0;
}

void AdaptiveBatch::fails(int64_t count) {
  const std::lock_guard lock(mutex_);
  if (limit_ > (count + 1) / 2) {
    limit_ = (count + 1) / 2;
    log::warn("no memory for {} windows at once: {} from now on", count, limit_);
  }
  passes_ = 0;
}

std::vector<Tensor> AdaptiveBatch::operator()(const Run& run, const Tensor& windows) {
  const int64_t total = windows.size(0);
  std::vector<std::vector<at::Tensor>> parts;  // by output
  for (int64_t first = 0; first < total;) {
    break_on_signal();
    const int64_t count = now(total - first);
    try {
      std::vector<at::Tensor> made = run(windows.narrow(0, first, count));
      fits(count);
      if (count == total) return made;
      parts.resize(made.size());
      for (std::size_t i = 0; i < made.size(); ++i) parts[i].push_back(std::move(made[i]));
      first += count;
    } catch (const std::exception& error) {
      if (count == 1 || !device::is_out_of_memory(error)) throw;
      fails(count);
      release_unused_memory();
      device::empty_cache(windows.device());
    }
  }
  std::vector<at::Tensor> outputs;
  for (const std::vector<at::Tensor>& part : parts) outputs.push_back(at::cat(part));
  return outputs;
}

}  // namespace cytra::inference
