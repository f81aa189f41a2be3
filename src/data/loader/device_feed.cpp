#include "data/loader/device_feed.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/stopwatch.h"
#include "device/backend.h"
#include "perf/scopes.h"

namespace cytra::data {
namespace {

// The current stream, through the device's own guard, as nothing here links against CUDA.
c10::Stream compute_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

/// A batch that is being copied.
struct DeviceFeed::BatchCopy {
  Batch host, device;
  c10::Event done;
};

DeviceFeed::DeviceFeed(DataLoader& loader, c10::Device device) : loader_(loader), device_(device) {
  if (!device::has_streams(device_)) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  stream_ = guard.getStreamFromGlobalPool(device_.has_index() ? device_ : guard.getDevice(), false);
}
DeviceFeed::~DeviceFeed() = default;

void DeviceFeed::start_epoch(int64_t epoch, int64_t first, bool more) {
  ahead_.reset();
  loader_.start_epoch(epoch, first, more);
}

std::optional<Batch> DeviceFeed::from_loader() {
  const Stopwatch stopwatch;
  std::optional<Batch> batch = loader_.next();
  waited_s_ += stopwatch.seconds();
  return batch;
}

std::unique_ptr<DeviceFeed::BatchCopy> DeviceFeed::start_copy(Batch batch) {
  const c10::StreamGuard guard(*stream_);
  auto copy =
      std::make_unique<BatchCopy>(BatchCopy{std::move(batch), {}, c10::Event(device_.type())});
  copy->device = copy->host;
  for (auto& [key, tensor] : copy->device.tensors)
    tensor = tensor.to(device_, /*non_blocking=*/true);
  for (auto& [key, list] : copy->device.lists) {
    for (at::Tensor& tensor : list) tensor = tensor.to(device_, /*non_blocking=*/true);
  }
  copy->done.record(*stream_);
  return copy;
}

std::optional<Batch> DeviceFeed::next() {
  const perf::Scope scope("data");
  std::optional<Batch> batch = on_device();
  if (batch) apply_all(loader_.batch_transforms(), *batch, batch->keys);
  return batch;
}

std::optional<Batch> DeviceFeed::on_device() {
  if (!device::has_streams(device_)) return from_loader();
  while (!done_.empty() && done_.front()->done.query()) done_.pop_front();
  if (!ahead_) {
    std::optional<Batch> batch = from_loader();
    if (!batch) return std::nullopt;
    ahead_ = start_copy(std::move(*batch));
  }
  std::unique_ptr<BatchCopy> copy = std::move(ahead_);
  const c10::Stream stream = compute_stream(device_);
  copy->done.block(stream);
  // the memory was allocated on the copy's stream: it must not be reused before the step has read
  // it
  for (const auto& [key, tensor] : copy->device.tensors) tensor.record_stream(stream);
  for (const auto& [key, list] : copy->device.lists) {
    for (const at::Tensor& tensor : list) tensor.record_stream(stream);
  }
  Batch batch = std::move(copy->device);
  done_.push_back(std::move(copy));
  if (loader_.is_ready()) {
    std::optional<Batch> following = from_loader();
    if (following) ahead_ = start_copy(std::move(*following));
  }
  return batch;
}

}  // namespace cytra::data
