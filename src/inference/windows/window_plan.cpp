#include "inference/windows/window_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "device/backend.h"
#include "device/memory.h"
#include "inference/windows/windows.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

// Memory that a library allocates for itself (oneDNN's copies in its own layouts) is not counted,
// so larger windows are only used when there is so much more memory.
constexpr double kMargin = 2;
// Bytes per voxel, after the windows: class numbers (int64), mask, the image that is written,
// overlay.
constexpr double kAfter = 12;
// Windows at once, where memory is all that limits them: more make no pass faster.
constexpr int64_t kMostAtOnce = 64;

// Memory on a CPU besides tensors: kernels that libraries compile, and the memory of each of their
// threads.
constexpr int64_t kOfLibraries = int64_t{48} << 20;

class PeakMeter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*address*/,
                         int64_t bytes,
                         std::size_t /*allocated*/,
                         std::size_t /*reserved*/,
                         c10::Device /*device*/) override {
    now_ += bytes;
    peak_ = std::max(peak_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  int64_t now_ = 0, peak_ = 0;
};

/// Checks for free memory before the first pass of a model.
void expect_free_memory() {
  const FreeMemory free = free_memory_on(c10::kCPU);
  if (free.bytes > 0) return;
  throw MemoryError(
      "the model is loaded, and less than {} are left ({}) for its passes; more memory, or a "
      "smaller model, is needed",
      format_bytes(static_cast<double>(kOfLibraries)),
      free.limit);
}

}  // namespace

ModelCost measure_cost(const Network& model, const Tensor& window) {
  if (window.is_cpu()) {
    expect_free_memory();
  } else {
    model(window);  // memory that libraries allocate once and keep does not count for windows
  }
  const auto meter = std::make_shared<PeakMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  const at::Tensor output = model(window);
  const auto voxels = static_cast<double>(window.numel() / window.size(1));
  return {static_cast<double>(meter->peak()) / voxels + 4.0 * static_cast<double>(window.size(1)),
          output.size(1)};
}

WindowMemory memory_of(const std::vector<int64_t>& size,
                       int64_t channels,
                       const SlidingWindowOptions& options,
                       const ModelCost& cost,
                       const ops::Finish& finish) {
  const WindowLayout layout = layout_windows(size, options);
  const ops::WindowGrid grid = make_grid(layout, options, layout.roi);
  WindowMemory memory;
  memory.windows = layout.windows();
  memory.rows = std::min(size[0], layout.roi[0]);
  double row = 1, window = 1;  // voxels
  for (std::size_t d = 1; d < size.size(); ++d) row *= static_cast<double>(size[d]);
  for (const int64_t side : layout.roi) window *= static_cast<double>(side);
  const double image = row * static_cast<double>(size[0]),
               slab = row * static_cast<double>(memory.rows);
  const double batch = static_cast<double>(std::min(options.sw_batch_size, memory.windows)) *
                       window * cost.bytes_per_voxel;
  const double input = 4 * static_cast<double>(channels);
  const double sums = 4 * static_cast<double>(cost.out_channels);
  const double finished = static_cast<double>(finish.channels(cost.out_channels)) *
                          static_cast<double>(c10::elementSize(finish.type));
  const bool in_place = finish.kind == ops::Finish::Kind::logits && finish.type == at::kFloat &&
                        !finish.weight.defined();
  memory.in_memory = image * (input + sums) + std::max(batch, in_place ? 0 : image * finished);
  int64_t most = 0;  // rows that become final at once
  for (std::size_t i = 0; i < layout.starts[0].size(); ++i) {
    const auto [begin, end] = grid.final_rows(static_cast<int64_t>(i));
    most = std::max(most, end - begin);
  }
  const auto in_parts = [&](double rows, double bytes) {
    return std::min(rows * row * bytes, std::max(kBytesAtOnce, row * bytes));
  };
  // Rows are in memory twice: as they were read, and in their place.
  memory.by_slabs = (options.slab_folder.empty() ? slab * (input + sums) : 0) +
                    std::max(in_parts(static_cast<double>(memory.rows), input),
                             batch + in_parts(static_cast<double>(most), finished));
  return memory;
}

FreeMemory free_memory_on(c10::Device device) {
  if (device::has_own_memory(device)) return {device::free_memory(device), "the device"};
  const AvailableMemory memory = available_memory();
  if (memory.bytes == INT64_MAX) return {memory.bytes, memory.limit};
  const bool is_hard = memory.limit != "the machine";
  return {std::max<int64_t>(0, memory.bytes - kOfLibraries), memory.limit, is_hard};
}

double WindowPlanner::bytes_of(const std::vector<int64_t>& size,
                               const SlidingWindowOptions& chosen,
                               double margin) const {
  if (by_slabs != nullptr) {
    const ModelCost most{margin * cost.bytes_per_voxel, cost.out_channels};
    return memory_of(size, channels, chosen, most, *by_slabs).by_slabs;
  }
  double image = 1, window = 1, count = 1;
  std::vector<int64_t> sides = chosen.roi_size;
  if (chosen.spatial_dim) sides.insert(sides.begin() + *chosen.spatial_dim, 1);
  for (std::size_t d = 0; d < size.size(); ++d) {
    const double side = static_cast<double>(size[d]);
    const double roi = static_cast<double>(sides.at(d));
    image *= std::max(side, roi);
    window *= roi;
    count *= std::max(1.0, side / roi);  // at least: they overlap
  }
  const double windows =
      std::min(static_cast<double>(chosen.sw_batch_size), std::ceil(count)) * window;
  return 4 * image * static_cast<double>(cost.out_channels) +
         std::max(4 * image + margin * windows * cost.bytes_per_voxel, kAfter * image);
}

SlidingWindowOptions WindowPlanner::plan(const std::string& id,
                                         const std::vector<int64_t>& size,
                                         int64_t held_bytes,
                                         const FreeMemory& free,
                                         const std::string& folder) const {
  SlidingWindowOptions base = options;
  std::vector<int64_t> sides = size;  // those that the model sees
  if (base.spatial_dim && size.size() == 3) sides.erase(sides.begin() + *base.spatial_dim);
  if (base.roi_size.size() == 1) base.roi_size.resize(sides.size(), base.roi_size[0]);
  if (base.roi_size.size() != sides.size()) return options;  // sliding_window() throws
  for (std::size_t d = 0; d < sides.size(); ++d) {
    if (base.roi_size[d] <= 0) base.roi_size[d] = sides[d];
  }
  if (fills) base.sw_batch_size = kMostAtOnce;
  const auto bytes = [&](const SlidingWindowOptions& chosen, double margin = 1) {
    return static_cast<double>(held_bytes) + bytes_of(size, chosen, margin);
  };
  if (grows) {
    SlidingWindowOptions larger = base;
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const int64_t whole = (sides[d] + divisor[d] - 1) / divisor[d] * divisor[d];
      larger.roi_size[d] = std::min(2 * base.roi_size[d], whole);
      base.roi_size[d] = std::min(base.roi_size[d], whole);
    }
    for (;;) {
      if (bytes(larger, kMargin) <= static_cast<double>(free.bytes)) return larger;
      if (larger.sw_batch_size == 1) break;
      larger.sw_batch_size = fills ? larger.sw_batch_size / 2 : 1;
    }
    log::info(
        "{}: windows of {} would take {} of the {} that are left ({}); they get the training's "
        "size",
        id,
        fmt::join(larger.roi_size, "x"),
        format_bytes(bytes(larger, kMargin)),
        format_bytes(static_cast<double>(free.bytes)),
        free.limit);
  }
  const double margin = free.is_hard ? kMargin : 1;
  SlidingWindowOptions fewer = base;
  while (bytes(fewer, margin) > static_cast<double>(free.bytes) && fewer.sw_batch_size > 1)
    fewer.sw_batch_size = (fewer.sw_batch_size + 1) / 2;
  if (bytes(fewer, margin) <= static_cast<double>(free.bytes)) {
    if (fewer.sw_batch_size < base.sw_batch_size && !fills) {
      log::info(
          "{}: {} windows at once would take {} of the {} that are left ({}); {} are predicted at "
          "once",
          id,
          base.sw_batch_size,
          format_bytes(bytes(base, margin)),
          format_bytes(static_cast<double>(free.bytes)),
          free.limit,
          fewer.sw_batch_size);
    }
    return fewer;
  }
  if (by_slabs != nullptr && !folder.empty()) {
    const double before = bytes(fewer, margin);
    fewer.slab_folder = folder;
    if (bytes(fewer, margin) <= static_cast<double>(free.bytes)) {
      log::info("{}: rows and sums of windows would take {} of the {} left ({}); they are in files",
                id,
                format_bytes(before - bytes(fewer, margin)),
                format_bytes(static_cast<double>(free.bytes)),
                free.limit);
      spare_memory();
      return fewer;
    }
  }
  throw MemoryError(
      "{}: {} voxels by windows of {}, and what comes after them, take {} or more, {} are left "
      "({}); try a smaller inference_args.roi_size, smaller images, or more memory",
      id,
      fmt::join(size, "x"),
      fmt::join(base.roi_size, "x"),
      format_bytes(bytes(fewer, margin)),
      format_bytes(static_cast<double>(free.bytes)),
      free.limit);
}

}  // namespace cytra::inference
