#pragma once
#include <deque>
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "data/loader.h"

namespace cytra::data {

/// The batches of a loader on a device. To a GPU they go on a stream of their own, and the next one
/// is under way while the step computes. There the loader's batch transforms are applied.
class DeviceFeed {
 public:
  DeviceFeed(DataLoader& loader, c10::Device device);
  ~DeviceFeed();
  /// As DataLoader::start_epoch.
  void start_epoch(int64_t epoch, int64_t first = 0, bool more = false);
  /// As DataLoader::next().
  std::optional<Batch> next();
  /// Seconds that next() has waited for the loader so far.
  double waited_s() const { return waited_s_; }

 private:
  struct BatchCopy;
  std::optional<Batch> from_loader();
  std::unique_ptr<BatchCopy> start_copy(Batch batch);
  std::optional<Batch> on_device();

  DataLoader& loader_;
  c10::Device device_;
  std::optional<c10::Stream> stream_;  // of all copies; none on a CPU
  double waited_s_ = 0;
  std::unique_ptr<BatchCopy> ahead_;
  std::deque<std::unique_ptr<BatchCopy>> done_;  // whose page-locked memory may still be read
};

}  // namespace cytra::data
