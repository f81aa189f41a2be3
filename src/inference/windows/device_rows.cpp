#include "inference/windows/device_rows.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/backend.h"
#include "device/memory.h"
#include "inference/windows/window_run.h"
#include "inference/windows/windows.h"

namespace cytra::inference {
namespace {

constexpr std::size_t kMostOnTheirWay = 2;

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// The copy streams of a device. They are the same for every image, since torch keeps a pool of
/// memory for each stream.
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

}  // namespace

std::vector<bool> are_finite(const Tensor& images) {
  const at::Tensor flat = images.flatten(1);
  // A sum is only finite if all its parts are: this is half the work, where a second check does
  // not have to wait for a device.
  if (flat.is_cpu() && flat.sum(1).isfinite().all().item<bool>())
    return std::vector<bool>(static_cast<std::size_t>(flat.size(0)), true);
  const at::Tensor bad = device::to_host(flat.isfinite().logical_not().sum(1));
  std::vector<bool> fine;
  for (int64_t i = 0; i < bad.size(0); ++i) fine.push_back(bad.const_data_ptr<int64_t>()[i] == 0);
  return fine;
}

struct RowUpload::Copy {
  c10::Event done;
};

RowUpload::RowUpload(c10::Device device) : device_(device) {}
RowUpload::~RowUpload() = default;

void RowUpload::start(const Tensor& rows) {
  if (!device::has_streams(device_)) {
    rows_ = rows.to(device_);
    return;
  }
  const c10::Stream stream = copy_streams(device_).up;
  const c10::StreamGuard guard(stream);
  rows_ = device::to_device(rows, device_);
  copy_ = std::make_unique<Copy>(Copy{c10::Event(device_.type())});
  copy_->done.record(stream);
}

Tensor RowUpload::take() {
  if (copy_ != nullptr) {
    const c10::Stream stream = current_stream(rows_.device());
    copy_->done.block(stream);
    rows_.record_stream(stream);  // allocated on the copy's stream: must not be reused before it
                                  // is read
    copy_.reset();
  }
  return std::exchange(rows_, {});
}

RowRing::RowRing(const RowSource& source,
                 int64_t length,
                 int64_t first,
                 c10::Device device,
                 const std::string& folder)
    : source_(source), read_(first), held_(first), upload_(device) {
  std::vector<int64_t> shape = source.shape;
  shape[1] = length;
  ring_ = make_room(shape, device, folder);
  const double row = static_cast<double>(ring_.nbytes()) / static_cast<double>(length);
  most_at_once_ = std::max<int64_t>(1, static_cast<int64_t>(kBytesAtOnce / row));
}

const Tensor& RowRing::up_to(int64_t end) {
  while (held_ < end) {
    if (!upload_.is_under_way()) read(std::min(end, read_ + most_at_once_));
    const int64_t begin = held_, length = ring_.size(1);
    const at::Tensor rows = upload_.take();
    while (held_ < read_) {
      const int64_t place = held_ % length, count = std::min(read_ - held_, length - place);
      ring_.narrow(1, place, count).copy_(rows.narrow(1, held_ - begin, count));
      held_ += count;
    }
  }
  return ring_;
}

void RowRing::fetch(int64_t end) {
  if (!ring_.is_cpu() && !upload_.is_under_way() && read_ < end) read(end);
}

void RowRing::read(int64_t end) {
  const at::Tensor rows = source_.read(read_, end - read_);
  std::vector<int64_t> expected = source_.shape;
  expected[1] = end - read_;
  if (rows.sizes() != at::IntArrayRef(expected)) {
    throw std::logic_error(fmt::format("predict_slabs: rows of ({}), expected ({})",
                                       fmt::join(rows.sizes(), ","),
                                       fmt::join(expected, ",")));
  }
  upload_.start(rows);
  read_ = end;
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
    return device::page_locked(dense).copy_(dense, /*non_blocking=*/true);
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
