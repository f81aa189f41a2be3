// Part of pipelines/predict/image_work.h: what predicting an image takes, for predict.dry_run.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/files.h"
#include "base/signal_watch.h"
#include "base/stopwatch.h"
#include "device/backend.h"
#include "device/device.h"
#include "pipelines/predict/image_work.h"

namespace cytra::pipelines {
namespace {

/// A folder that is removed with the object, and where a signal ends the program.
struct PassingFolder {
  std::string path = make_with_start([] {
    std::error_code missing;
    return make_run_folder(std::filesystem::temp_directory_path(missing) / "cytra-dry-run");
  });
  ~PassingFolder() { remove_all_quietly(path); }
};

}  // namespace

/// Measures the whole road of an image, from its file to the results' files, by rows in its middle
/// whose windows take some seconds, or by all of it.
ImageWork::Measured ImageWork::measure(const data::Sample& frame,
                                       const std::vector<int64_t>& pass,
                                       const inference::SlidingWindowOptions& windows,
                                       int64_t count) {
  constexpr double kSeconds = 8;
  const auto timed = [&](const auto& work) {
    const Stopwatch stopwatch;
    work();
    device::synchronize(device());
    return stopwatch.seconds();
  };
  const at::Tensor noise = at::rand(pass).to(device());
  const auto forward = [&] { windowed().forward(noise); };
  forward();  // the first pass makes the engine
  const double passes = std::ceil(static_cast<double>(count) / static_cast<double>(pass[0])),
               all = passes * timed(forward);
  const PassingFolder folder;
  const PredictJobPointer job = new_job();
  const auto source = frame.sources.find(source_key());
  if (source != frame.sources.end()) job->path = source->second.path;  // else made of others
  job->stem = folder.path + "/part";
  std::shared_ptr<const inference::ModelInput> part;
  const double reading = timed([&] {
    data::Sample sample = frame;
    sample.folder = folder.path;
    part = std::make_shared<inference::ModelInput>(windowed().transforms.apply(
        std::move(sample), windowed().x_key, spacing_um_, inference::by_rows_from()));
  });
  const int64_t rows = part->shape[1];
  const int64_t some = std::max<int64_t>(
      std::llround(static_cast<double>(rows) * kSeconds / std::max(all, kSeconds)), 2 * pass[2]);
  Measured made;
  if (some < rows) {
    // A larger image has more blocks of labels, and one in memory has its labels there.
    const inference::ImageResult whole(predictor_, result_, part, {});
    int64_t more = part->is_by_rows() ? 0 : 4 * (rows - some);
    for (std::size_t d = 2; d < part->shape.size(); ++d) more *= part->shape[d];
    part = std::make_shared<inference::ModelInput>(part->part((rows - some) / 2, some));
    const inference::ImageResult cut(predictor_, result_, part, {});
    made.bytes = static_cast<double>(more + whole.work_bytes() - cut.work_bytes());
  }
  const double working =
      timed([&] { inference::ImageResult(predictor_, result_, part, outputs_of(*job)).run(); });
  const std::vector<int64_t> size(part->shape.begin() + 1, part->shape.end());
  const int64_t done = windowed().plan(size, windows, false).windows;
  made.seconds = working / static_cast<double>(done) + reading / static_cast<double>(count);
  made.bytes += static_cast<double>(device::backend_of(c10::kCPU).peak_memory(c10::kCPU));
  return made;
}

PredictWork::Plan ImageWork::plan(const data::Sample& frame) {
  const c10::InferenceMode inference_mode;
  const std::vector<int64_t> shape = windowed().transforms.shape_of(frame, windowed().x_key);
  const std::vector<int64_t> size{shape.begin() + 1, shape.end()};
  const std::string folder = ".";  // what does not fit into memory has one when it is predicted
  const inference::SlidingWindowOptions windows = windowed().windows(frame.id, size, folder);
  int64_t loading = 8;
  for (const int64_t side : shape) loading *= side;
  const auto plan = windowed().plan(size, windows, loading > inference::by_rows_from());
  std::vector<int64_t> pass{std::min(windows.sw_batch_size, plan.windows), shape[0]};
  for (std::size_t d = 0; d < size.size(); ++d)
    pass.push_back(windows.roi_size[d] > 0 ? windows.roi_size[d] : size[d]);
  const auto known = measured_.find(pass);
  const Measured& measured =
      known != measured_.end()
          ? known->second
          : measured_.emplace(pass, measure(frame, pass, windows, plan.windows)).first->second;
  return {plan.windows,
          device().is_cpu() ? measured.bytes : plan.bytes,
          static_cast<double>(plan.windows) * measured.seconds,
          plan.text};
}

}  // namespace cytra::pipelines
