#include "inference/device_rows.h"

#include <map>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace cytra::inference {
namespace {

constexpr std::size_t kMostOnTheirWay = 2;

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// Of a device: the same ones for every image, since torch keeps a store of memory for each stream.
struct CopyStreams {
  c10::Stream up, down;
};
const CopyStreams& copy_streams(c10::Device device) {
  static std::mutex mutex;
  static std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, CopyStreams> all;
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (!device.has_index()) device = guard.getDevice();
  const std::lock_guard lock(mutex);
  const auto found = all.find({device.type(), device.index()});
  if (found != all.end()) return found->second;
  const auto make = [&] { return guard.getStreamFromGlobalPool(device, false); };
  const c10::Stream up = make(), down = make();
  return all.emplace(std::pair(device.type(), device.index()), CopyStreams{up, down}).first->second;
}

at::Tensor page_locked(const at::Tensor& like) {
  return at::empty(like.sizes(), at::TensorOptions(like.scalar_type()).pinned_memory(true));
}

}  // namespace

Tensor to_device(const Tensor& values, c10::Device device) {
  if (values.device() == device || !device.is_cuda()) return values.to(device);
  return page_locked(values).copy_(values).to(device, /*non_blocking=*/true);
}

struct RowUpload::Copy {
  c10::Event done;
};

RowUpload::RowUpload(c10::Device device) : device_(device) {}
RowUpload::~RowUpload() = default;

void RowUpload::start(const Tensor& rows) {
  if (!device_.is_cuda()) {
    rows_ = rows.to(device_);
    return;
  }
  const c10::Stream stream = copy_streams(device_).up;
  const c10::StreamGuard guard(stream);
  rows_ = to_device(rows, device_);
  copy_ = std::make_unique<Copy>(Copy{c10::Event(device_.type())});
  copy_->done.record(stream);
}

Tensor RowUpload::take() {
  if (copy_ != nullptr) {
    const c10::Stream stream = current_stream(rows_.device());
    copy_->done.block(stream);
    rows_.record_stream(stream);  // allocated on the copy's: not to be handed out before it is read
    copy_.reset();
  }
  return std::exchange(rows_, {});
}

struct RowDownload::Copy {
  int64_t first;
  std::vector<at::Tensor> values;
  at::Tensor bad;
  c10::Event done;
};

RowDownload::RowDownload(Take take) : take_(std::move(take)) {}
RowDownload::~RowDownload() = default;

void RowDownload::start(int64_t first, const std::vector<Tensor>& values, const Tensor& bad) {
  const c10::Device device = bad.device();
  c10::Event made(device.type());
  made.record(current_stream(device));
  const c10::Stream stream = copy_streams(device).down;
  const c10::StreamGuard guard(stream);
  made.block(stream);
  const auto bring = [&](const at::Tensor& value) {
    const at::Tensor dense = value.contiguous();
    value.record_stream(stream);
    return page_locked(dense).copy_(dense, /*non_blocking=*/true);
  };
  Copy copy{first, {}, bring(bad), c10::Event(device.type())};
  for (const at::Tensor& value : values) copy.values.push_back(bring(value));
  copy.done.record(stream);
  copies_.push_back(std::move(copy));
  hand_on(kMostOnTheirWay);
}

void RowDownload::finish() {
  hand_on(0);
}

void RowDownload::hand_on(std::size_t most) {
  while (!copies_.empty()) {
    if (!copies_.front().done.query()) {
      if (copies_.size() <= most) return;
      copies_.front().done.synchronize();
    }
    const Copy copy = std::move(copies_.front());
    copies_.pop_front();
    take_(copy.first, copy.values, *copy.bad.const_data_ptr<int64_t>());
  }
}

}  // namespace cytra::inference
