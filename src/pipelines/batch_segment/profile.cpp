#include "pipelines/batch_segment/profile.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/table.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/error.h"
#include "device/memory.h"
#include "perf/device_usage.h"
#include "perf/measure.h"
#include "pipelines/batch_segment/compute.h"

namespace cytra::pipelines {
namespace {

constexpr double kSlowest = 10;  // times the time that was asked for

/// A batch that memory is too small for says so, and nothing else.
BoxBatch profile_batch(PromptedSegmenter& segmenter,
                       const at::Tensor& embedding,
                       const at::Tensor& boxes,
                       c10::Device device,
                       double seconds) {
  BoxBatch batch;
  batch.size = boxes.size(0);
  const at::Tensor image = at::zeros({batch.size}, boxes.options().dtype(at::kLong));
  const auto pass = [&] {
    device::to_host(segmenter.masks(embedding.index_select(0, image), boxes));
  };
  batch.is_out_of_memory = !device::if_it_fits([&] {
    device::reset_peak_memory(device);
    pass();
    perf::UsageMeter meter(device);
    meter.read();
    batch.seconds = 1e-3 * perf::measure(pass, {0, 1, seconds}, device).mean();
    const perf::DeviceUsage usage = meter.read();
    batch.boxes_per_s = static_cast<double>(batch.size) / batch.seconds;
    batch.cores_busy = usage.cores_busy;
    if (usage.gpu) batch.device_percent = usage.gpu->percent;
    batch.memory =
        device::has_own_memory(device) ? device::peak_memory(device) : usage.resident_bytes;
    // What is in use now and what is free make the whole: the peak is over, and free again.
    const int64_t used =
        device::has_own_memory(device) ? device::used_memory(device) : usage.resident_bytes;
    batch.device_memory = used + device::free_memory(device);
    return true;
  });
  if (batch.is_out_of_memory) {
    release_unused_memory();
    device::empty_cache(device);
  }
  return batch;
}

std::string memory_text(const BoxBatch& batch) {
  return fmt::format("{} ({:.0f} %)",
                     format_bytes(static_cast<double>(batch.memory)),
                     100.0 * static_cast<double>(batch.memory) /
                         static_cast<double>(std::max<int64_t>(batch.device_memory, 1)));
}

}  // namespace

std::vector<BoxBatch> profile_boxes(PromptedSegmenter& segmenter,
                                    const at::Tensor& image,
                                    const ops::Boxes& found,
                                    const std::vector<int64_t>& sizes,
                                    c10::Device device,
                                    double seconds) {
  const c10::InferenceMode inference_mode;
  const nn::SquareImage square = segmenter.prepare(image);
  const at::Tensor embedding = segmenter.encode(square.image.unsqueeze(0).to(device));
  const at::Tensor boxes = square.placement.boxes(found.corners).to(device);
  std::vector<BoxBatch> batches;
  for (const int64_t size : sizes) {
    const at::Tensor numbers = at::arange(size, at::kLong).remainder(boxes.size(0)).to(device);
    batches.push_back(
        profile_batch(segmenter, embedding, boxes.index_select(0, numbers), device, seconds));
    if (batches.back().is_out_of_memory || batches.back().seconds > kSlowest * seconds) break;
  }
  return batches;
}

int64_t best_batch(const std::vector<BoxBatch>& batches) {
  std::map<int64_t, double> seconds;
  for (const BoxBatch& batch : batches) {
    if (!batch.is_out_of_memory)
      seconds[batch.size] = static_cast<double>(batch.size) / batch.boxes_per_s;
  }
  return seconds.empty() ? -1 : perf::smallest_that_pays(seconds);
}

std::string format_batches(const std::vector<BoxBatch>& batches, c10::Device device) {
  const int64_t best = best_batch(batches);
  const bool is_gpu = device::is_accelerator(device);
  const char* use = is_gpu ? "GPU" : "cores";
  std::vector<std::vector<std::string>> rows{{"batch", "s", "boxes/s", use, "memory", ""}};
  for (const BoxBatch& batch : batches) {
    if (batch.is_out_of_memory) {
      rows.push_back({std::to_string(batch.size), "", "", "", "out of memory", ""});
      continue;
    }
    const std::string share = !is_gpu ? fmt::format("{:.1f}", batch.cores_busy)
                              : batch.device_percent
                                  ? fmt::format("{:.0f} %", *batch.device_percent)
                                  : "?";
    rows.push_back({std::to_string(batch.size),
                    fmt::format("{:.4f}", batch.seconds),
                    fmt::format("{:.1f}", batch.boxes_per_s),
                    share,
                    memory_text(batch),
                    batch.size == best ? "<- optimal" : ""});
  }
  return format_table(rows);
}

IoShare io_share(const StageReport& report) {
  double io = 0, compute = 0;
  for (const StageReport::Figures& stage : report.figures()) {
    if (stage.name == "load" || stage.name == "save") io += stage.busy_s;
    if (stage.name == "compute") compute += stage.busy_s;
  }
  IoShare share;
  if (io + compute <= 0) return share;
  share.io = io / (io + compute);
  share.compute = 1 - share.io;
  if (share.io >= 0.5) {
    share.verdict = "bound by reading and writing";
    share.advice =
        "segment.mode=parallel with more --io-workers; a faster disk; images that decode faster "
        "than compressed TIFF or PNG";
  } else if (share.io >= 0.15) {
    share.verdict = "bound by computing, with reading and writing worth hiding";
    share.advice = "segment.mode=parallel hides them behind the computing";
  } else {
    share.verdict = "bound by computing";
    share.advice = "a faster device, a smaller model, or --cache-dir for images that come again";
  }
  return share;
}

}  // namespace cytra::pipelines
