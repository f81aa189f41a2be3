#include "inference/windows/window_run.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/lists.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "device/error.h"
#include "device/memory.h"
#include "ops/labels/row_step.h"

namespace cytra::inference {
namespace {

constexpr int64_t kPassesUntilMore = 64;  // that fit, before twice as many windows are tried

using Sizes = std::vector<int64_t>;

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
  return mapped(parts, [](const std::vector<at::Tensor>& part) { return at::cat(part); });
}

c10::Device device_or(const std::optional<std::string>& given, c10::Device fallback) {
  return given ? c10::Device(*given) : fallback;
}

at::Tensor as_zyx(at::Tensor tensor, std::size_t dims) {
  for (; dims < 3; ++dims) tensor = tensor.unsqueeze(-2);
  return tensor;
}

Sizes sizes_of(const ops::WindowGrid& grid, std::size_t dims) {
  Sizes sizes;
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_there = dims == 3 || d == 2 || (dims == 2 && d == 0);
    if (is_there) sizes.push_back(grid.axes[d].size);
  }
  return sizes;
}

at::Tensor make_room(const Sizes& shape, c10::Device device, at::MemoryFormat format) {
  at::Tensor room = at::empty(shape, at::device(device).dtype(at::kFloat), format);
  if (device.is_cpu()) prefer_large_pages(room.mutable_data_ptr(), room.nbytes());
  return room;
}

at::Tensor make_room(const Sizes& shape, c10::Device device, const std::string& folder) {
  const bool is_file = device.is_cpu() && !folder.empty();
  return is_file ? ops::room_for(shape, at::kFloat, folder, 0) : make_room(shape, device);
}

WindowRun::WindowRun(const WindowLayout& layout,
                     const SlidingWindowOptions& options,
                     int64_t images,
                     int64_t channels,
                     c10::Device image_device,
                     at::ScalarType type)
    : layout_(layout),
      options_(options),
      grid_(make_grid(layout, options, layout.roi)),
      per_image_(grid_.windows()),
      per_row_(per_image_ / std::ssize(grid_.axes[0].starts)),
      total_(per_image_ * images),
      type_(type),
      image_device_(image_device),
      model_device_(device_or(options.sw_device, image_device)),
      sums_device_(device_or(options.device, image_device)) {
  shape_ = {std::min(options.sw_batch_size, total_), channels};
  shape_.insert(shape_.end(), layout.roi.begin(), layout.roi.end());
  if (!image_device.is_cpu()) grid_.table = ops::window_table(grid_, image_device);
}

void WindowRun::run(const Forward& model, WindowIo& io, const WindowProgress& progress) {
  run(model, io, progress, 0, total_);
}

void WindowRun::run_rows(const Forward& model,
                         WindowIo& io,
                         const WindowProgress& progress,
                         int64_t begin,
                         int64_t end) {
  const int64_t batch = shape_[0], last = (end * per_row_ + batch - 1) / batch * batch;
  run(model, io, progress, first_of(begin), std::min(total_, last));
}

void WindowRun::run(const Forward& model,
                    WindowIo& io,
                    const WindowProgress& progress,
                    int64_t begin,
                    int64_t end) {
  std::optional<Progress> shown;
  if (options_.progress) shown.emplace("windows", end - begin);
  for (int64_t first = begin; first < end; first += shape_[0]) {
    const int64_t count = std::min(shape_[0], end - first);
    gather(io, first, count);
    sum(io, first, predict(model, count));
    if (first + count < end) io.expect_row((first + count) % per_image_ / per_row_);
    if (shown) shown->update(first + count - begin);
    if (progress) progress(first + count - begin, end - begin);
  }
}

void WindowRun::gather(WindowIo& io, int64_t first, int64_t count) {
  // A model may give its windows back, and who called it may keep them.
  if (!buffer_.defined() || buffer_.storage().use_count() > 1) {
    const bool last = options_.channels_last && layout_.slice_dim < 0 && shape_.size() > 3;
    const at::MemoryFormat format = !last               ? at::MemoryFormat::Contiguous
                                    : shape_.size() > 4 ? at::MemoryFormat::ChannelsLast3d
                                                        : at::MemoryFormat::ChannelsLast;
    buffer_ = make_room(shape_, image_device_, format);
  }
  const at::Tensor windows = as_zyx(buffer_, layout_.roi.size());
  for (int64_t begin = first; begin < first + count;) {
    const int64_t stop = end_of_row(begin, first + count);
    const at::Tensor image = io.image(begin / per_image_, begin % per_image_ / per_row_);
    const at::Tensor part = windows.narrow(0, begin - first, stop - begin);
    ops::gather(image, grid_, begin % per_image_, options_.cval, part);
    begin = stop;
  }
}

std::vector<at::Tensor> WindowRun::predict(const Forward& model, int64_t count) {
  at::Tensor windows = buffer_.narrow(0, 0, count);
  if (layout_.slice_dim >= 0) windows = windows.squeeze(layout_.slice_dim + 2);
  std::vector<at::Tensor> made = adaptive_(model, windows.to(model_device_, type_));
  if (made.empty()) throw DataError("sliding window: the model made no output");
  for (at::Tensor& output : made) {
    if (layout_.slice_dim >= 0) output = output.unsqueeze(layout_.slice_dim + 2);
    if (output.dim() != std::ssize(shape_) || output.size(0) != count) {
      throw DataError("sliding window: the model made ({}) of windows of ({})",
                      fmt::join(output.sizes(), ","),
                      fmt::join(windows.sizes(), ","));
    }
  }
  return made;
}

void WindowRun::sum(WindowIo& io, int64_t first, std::vector<at::Tensor> made) {
  if (outputs_.empty()) {
    for (const at::Tensor& values : made) {
      SummedOutput& output = outputs_.emplace_back(
          SummedOutput{make_grid(layout_, options_, values.sizes().slice(2).vec()),
                       values.size(1),
                       sums_device_});
      if (!sums_device_.is_cpu()) output.grid.map = ops::window_map(output.grid, sums_device_);
    }
    io.open(outputs_);
  }
  if (made.size() != outputs_.size()) {
    throw DataError(
        "sliding window: the model made {} outputs, then {}", outputs_.size(), made.size());
  }
  for (at::Tensor& values : made) {
    if (values.scalar_type() == at::kDouble) values = values.to(at::kFloat);
    values = as_zyx(values.to(sums_device_), layout_.roi.size());
  }
  const int64_t end = first + made[0].size(0);
  for (int64_t begin = first; begin < end;) {
    const int64_t stop = end_of_row(begin, end);
    const int64_t n = begin / per_image_;
    for (std::size_t o = 0; o < made.size(); ++o) {
      ops::accumulate(made[o].narrow(0, begin - first, stop - begin),
                      outputs_[o].grid,
                      begin % per_image_,
                      io.sums(n, o));
    }
    if (stop % per_row_ == 0) io.close_row(outputs_, n, begin % per_image_ / per_row_);
    begin = stop;
  }
}

}  // namespace cytra::inference
