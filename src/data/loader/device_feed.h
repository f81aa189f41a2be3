#pragma once
#include <deque>
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "data/loader/loader.h"

namespace cytra::data {

/// Copies the batches of a loader to a device. Copies to a GPU have their own stream: the next
/// batch is copied while the step computes. The loader's batch transforms are applied on the
/// device.
class DeviceFeed {
 public:
  DeviceFeed(DataLoader& loader, c10::Device device);
  ~DeviceFeed();
  /// Begins an epoch, as DataLoader::start_epoch().
  void start_epoch(int64_t epoch, int64_t first = 0, bool more = false);
  /// The next batch, as DataLoader::next().
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
  std::deque<std::unique_ptr<BatchCopy>> done_;  // copies whose page-locked memory may still be
                                                 // read
};

}  // namespace cytra::data
