// The work of `batch_segment`: images through a detector and a prompted segmenter, to files.

#include <fmt/format.h>

#include "app/segment/config.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/text_of.h"
#include "device/error.h"
#include "inference/imported/imported_model.h"
#include "io/csv.h"
#include "nn/weights.h"
#include "pipelines/batch_segment/files.h"
#include "pipelines/batch_segment/inputs.h"
#include "pipelines/job/stamp.h"
#include "pipelines/job/tally.h"
#include "pipelines/job/work_profile.h"

namespace cytra::app {
namespace {

using pipelines::SegmentedImage;
using pipelines::SegmentInput;
using pipelines::Tally;

struct SegmentRunOptions {
  static constexpr int64_t kSquare = -1;  // a tile that is the segmenter's square
  pipelines::BatchSegmentOptions batch;
  int64_t sam_batch_size = 0;
  std::string preset = "auto";
  bool object_masks = false, resume = false;
  std::optional<std::string> cache_dir, prometheus, profiler;
  SegmentRunOptions() { batch.image_batch_size = batch.io_workers = 0, batch.tile = kSquare; }
  void visit(auto& v) {
    v("mode",
      batch.mode,
      "naive: models loaded for each image, each box by itself; optimized: in batches; parallel: "
      "while other threads read and write",
      {"naive", "optimized", "parallel"});
    v("preset",
      preset,
      "batch sizes for a kind of device; auto: for the device in use",
      pipelines::segment_preset_names());
    v("sam_batch_size",
      sam_batch_size,
      "boxes in one pass of the mask decoder; AUTO: the preset's, by the images' number of objects",
      config::Keyword{1, 65536, "AUTO", 0});
    v("image_batch_size",
      batch.image_batch_size,
      "images in one pass of detector and encoder; AUTO: the preset's, by the mode",
      config::Keyword{1, 4096, "AUTO", 0});
    v("io_workers",
      batch.io_workers,
      "threads that read, and as many that write; AUTO: the preset's",
      config::Keyword{1, 256, "AUTO", 0});
    v("tile",
      batch.tile,
      "side in pixels of the tiles into which larger images are cut for detection and encoding; "
      "neighbours overlap by a quarter; 0: images as a whole; AUTO: the square of a trained "
      "segmenter where that is smaller than 512, else 0",
      config::Keyword{0, 65536, "AUTO", kSquare});
    v("object_masks", object_masks, "also write a PNG for each object");
    v("cache_gb",
      batch.cache.ram_gb,
      "GB of memory for images' encodings; the least recently used are dropped first",
      0,
      1e6);
    v("cache_dir", cache_dir, "folder that keeps encodings, by the files' content");
    v("cache_dir_gb",
      batch.cache.disk_gb,
      "GB that this folder may take; the least recently used are dropped first",
      0,
      1e6);
    v("resume", resume, "go on with paths.output_dir: leave out images that are done");
    v("profiler",
      profiler,
      "what the thread that computes does, by batches of images, into the folder profiler: memory, "
      "transfers, or pytorch (operations)",
      pipelines::profile_names());
    v("prometheus", prometheus, "a file of figures for Prometheus, written at the end");
  }
  void check() const {
    if (batch.tile > 0 && batch.tile < 64)
      throw ConfigError("tile: {}, expected AUTO, 0 or at least 64", batch.tile);
  }
  /// The side of the tiles for this segmenter.
  int64_t tile_for(const std::string& segmenter) const {
    constexpr int64_t kSmall = 512;
    if (batch.tile != kSquare) return batch.tile;
    if (!segmenter.ends_with(".ckpt")) return 0;
    const int64_t side = nn::checkpoint_config(segmenter).get<int64_t>("model.img_size", 0);
    return side < kSmall ? side : 0;
  }
  /// The options with a value in place of each AUTO.
  pipelines::BatchSegmentOptions of(c10::Device device) const {
    pipelines::BatchSegmentOptions options = batch;
    const pipelines::SegmentPreset chosen = pipelines::segment_preset(preset, device);
    options.sam_batch_size =
        sam_batch_size == 0
            ? chosen.sam_batch_size
            : pipelines::BoxBatchSizes{sam_batch_size, sam_batch_size, sam_batch_size};
    if (options.image_batch_size == 0)
      options.image_batch_size = chosen.image_batch_size(options.mode);
    if (options.io_workers == 0) options.io_workers = chosen.io_workers;
    options.cache.cache_dir = cache_dir.value_or("");
    return options;
  }
};

struct BatchSegmentConfig : SegmentConfig {
  struct Data {
    std::string path, on_error = "skip";
    std::optional<std::string> view;
    void visit(auto& v) {
      v("path",
        path,
        "an image, a folder (its sub-folders are views), or a table with a column `image`",
        config::required);
      v("view", view, "for images that have views: segment only this one");
      v("on_error",
        on_error,
        "an image that can't be read or segmented: is left out, or ends the run",
        {"skip", "fail"});
    }
  };
  Data data;
  SegmentRunOptions segment;
  void visit(auto& v) {
    v("data", data, "what to segment");
    v("segment", segment, "how, and what to write");
    SegmentConfig::visit(v);
  }
};
const bool batch_segment_is_added = add_program<BatchSegmentConfig>("batch_segment");

/// Writes the results, and counts images and errors.
class SegmentResults final : public pipelines::SegmentSink {
 public:
  SegmentResults(pipelines::SegmentFiles& files, Tally& tally, int64_t images, bool ends_on_error)
      : files_(files),
        tally_(tally),
        ends_on_error_(ends_on_error),
        progress_("segmenting", images) {}
  bool wants(const SegmentInput& input, const std::string& content) override {
    if (!files_.has(input, content)) return true;
    const std::lock_guard lock(tally_.mutex);
    ++tally_.resumed;
    count();
    return false;
  }
  void take(const SegmentedImage& image) override {
    files_.write(image);
    const std::lock_guard lock(tally_.mutex);
    boxes_ += std::ssize(image.objects);
    count();
  }
  void leave_out(const SegmentInput& input, std::exception_ptr error) override {
    bool is_of_disk = false;  // an IoError by guarded() is the device's: no image caused it
    try {
      device::guarded([&] {
        try {
          std::rethrow_exception(error);
        } catch (const IoError&) {
          is_of_disk = true;
          throw;
        }
      });
    } catch (const std::exception& what) {
      if (dynamic_cast<const IoError*>(&what) != nullptr && !is_of_disk) throw;
      if (ends_on_error_) throw;
      tally_.leave_out(input.path, what);
      const std::lock_guard lock(tally_.mutex);
      errors_.push_back({io::safe_cell(input.path),
                         io::safe_cell(input.view),
                         std::to_string(exit_code(what)),
                         io::safe_cell(what.what())});
    }
  }
  /// Writes errors.csv into a folder; no file where nothing failed.
  void write_errors(const std::string& folder) const {
    const std::string path = folder + "/errors.csv";
    if (may_replace(path)) remove_quietly(path);
    if (!errors_.empty()) io::write_table(path, {"image", "view", "code", "error"}, errors_);
  }
  int64_t failed() const { return std::ssize(errors_); }

 private:
  void count() {
    ++tally_.done;
    progress_.update(tally_.done, fmt::format("{} boxes", boxes_));
  }
  pipelines::SegmentFiles& files_;
  Tally& tally_;
  const bool ends_on_error_;
  Progress progress_;  // this and all below: guarded by the tally's mutex
  int64_t boxes_ = 0;
  std::vector<std::vector<std::string>> errors_;
};

/// "64, 64 or 48": for few objects in an image, some or many.
std::string text_of(const pipelines::BoxBatchSizes& boxes) {
  if (boxes.few == boxes.many) return std::to_string(boxes.few);
  return fmt::format("{}, {} or {}", boxes.few, boxes.some, boxes.many);
}

/// All settings that results depend on except the images, by view; `precision`: that of the
/// products. Throws: ConfigError for a missing model: a view's detector is loaded only when its
/// images come, which may take hours.
std::map<std::string, std::string> segment_settings(const BatchSegmentConfig& config,
                                                    const std::string& precision,
                                                    const std::vector<SegmentInput>& inputs) {
  const auto stamp = [](const char* key, const std::string& file) {
    if (!path_exists(file)) throw ConfigError("{}: {}: no such file", key, file);
    return data::content_stamp(file);
  };
  const std::string segmenter = stamp("segmenter.path", config.segmenter.path);
  const std::string common =
      fmt::format("{} {} {} {} {} {}",
                  config::text_of(config.detector, {"path", "views"}),
                  config.segment.tile_for(config.segmenter.path),
                  config::text_of(config.performance, pipelines::kOptionsOfSpeed),
                  config::text_of(config.model),
                  precision,
                  segmenter);
  std::map<std::string, std::string> settings;
  for (const SegmentInput& input : inputs) {
    std::string& own = settings[input.view];
    if (own.empty()) own = common + " " + stamp("detector", config.detector.of(input.view));
  }
  return settings;
}

/// The class names of detectors that are checkpoints of ours, by view.
std::map<std::string, std::vector<std::string>> segment_class_names(
    const BatchSegmentConfig& config, const std::vector<SegmentInput>& inputs) {
  std::map<std::string, std::vector<std::string>> names;
  for (const SegmentInput& input : inputs) {
    const std::string& path = config.detector.of(input.view);
    const auto [own, is_new] = names.try_emplace(input.view);
    if (!is_new || inference::is_torchscript(path)) continue;
    own->second = nn::checkpoint_config(path).get<std::vector<std::string>>("task.class_names", {});
  }
  return names;
}

/// Warns of problems that a user would not see in the tables.
void warn_of_doubts(const pipelines::SegmentFiles::Totals& totals,
                    int64_t full_windows,
                    int64_t max_detections,
                    bool by_tiles) {
  if (!by_tiles && totals.most >= max_detections) {
    log::warn(
        "{}: {} objects, as many as detector.max_detections allows: there may be more, in other "
        "images, too",
        totals.most_in,
        totals.most);
  } else if (full_windows > 0) {
    log::warn(
        "{} images or tiles have as many objects as detector.max_detections, or the detector's own "
        "detections_per_img, allows: there may be more",
        full_windows);
  }
  if (totals.empty > 0) {
    log::warn(
        "{} of {} objects have an empty mask (area 0 in objects.csv). The segmenter sees an image "
        "scaled to its square: objects of only a few pixels may disappear in it; segment.tile cuts "
        "large images into parts",
        totals.empty,
        totals.objects);
  }
}

void tell_figures(const pipelines::StageReport& report,
                  const pipelines::SegmentCounts& counts,
                  double seconds,
                  Tally& tally) {
  report.log_times();
  log::info("{:.2f} images/s, {:.1f} boxes/s; {} images encoded, {} encodings reused",
            static_cast<double>(counts.images) / seconds,
            static_cast<double>(counts.boxes) / seconds,
            counts.encoded,
            counts.cached);
  tally.results.add("images_per_second", static_cast<double>(counts.images) / seconds);
  tally.results.add("boxes_per_second", static_cast<double>(counts.boxes) / seconds);
}

void count_figures(pipelines::StageReport& report,
                   const pipelines::SegmentCounts& counts,
                   int64_t failed) {
  report.count("images", "Images that were segmented.", counts.images);
  report.count("boxes", "Boxes for which a mask was made.", counts.boxes);
  report.count("images_encoded", "Passes of an image through the encoder.", counts.encoded);
  report.count("encodings_cached", "Encodings that were there already.", counts.cached);
  report.count("images_failed", "Images that could not be segmented.", failed);
}

int batch_segment(cli::Run run, const BatchSegmentConfig& config) {
  watch_signals();
  const StartOfWork start("the first image");
  device::prepare(config.performance);
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  const inference::EngineOptions engine = config.engine(device);
  const std::vector<SegmentInput> inputs =
      pipelines::list_segment_inputs(config.data.path, config.data.view);
  for (const SegmentInput& input : inputs) config.detector.of(input.view);  // before any work
  const auto settings = segment_settings(config, engine.precision, inputs);
  const auto class_names = segment_class_names(config, inputs);
  const std::string folder = open_run_folder(run, config.segment.resume);
  const RunLock lock(folder);
  device::apply(config.performance, device);
  pipelines::BatchSegmentOptions options = config.segment.of(device);
  options.tile = config.segment.tile_for(config.segmenter.path);
  const auto profile = pipelines::make_profile(config.segment.profiler, device, folder);
  if (profile) options.after_batch = [&profile] { profile->end_step(); };
  log::info("{} images on {}: {}, {} boxes and {} images a batch, {} I/O workers",
            inputs.size(),
            device::describe(device),
            options.mode,
            text_of(options.sam_batch_size),
            options.image_batch_size,
            options.io_workers);
  Tally tally(run.json);
  tally.images = std::ssize(inputs);
  pipelines::SegmentFiles files(
      folder,
      [&](const std::string& view) { return settings.at(view); },
      config.segment.object_masks,
      [&](const std::string& view) { return class_names.at(view); });
  pipelines::StageReport report("batch_segment");
  pipelines::BatchSegmenter segmenter(
      config.models(engine, options.image_batch_size, options.tile, device),
      options,
      device,
      report);
  const Stopwatch stopwatch;
  pipelines::SegmentCounts counts;
  int64_t failed = 0;
  {
    SegmentResults sink(files, tally, tally.images, config.data.on_error == "fail");
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      tally.conclude(folder,
                     "segmented in " + format_seconds(stopwatch.seconds()),
                     signal,
                     pipelines::kResumeHint);
    });
    counts = segmenter.run(inputs, sink);
    if (profile) profile->finish();
    report.finish();
    sink.write_errors(folder);
    failed = sink.failed();
  }
  const double elapsed = stopwatch.seconds();
  const pipelines::SegmentFiles::Totals totals = files.finish(inputs);
  count_figures(report, counts, failed);
  if (config.segment.prometheus) report.write_prometheus(*config.segment.prometheus);
  tell_figures(report, counts, elapsed, tally);
  warn_of_doubts(
      totals, counts.full_windows, config.detector.found.max_detections, options.tile > 0);
  tally.results.add("images", config::Node::make_integer(totals.images));
  tally.results.add("objects", config::Node::make_integer(totals.objects));
  tally.conclude(folder, "segmented in " + format_seconds(stopwatch.seconds()));
  return tally.code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_batch_segment(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::batch_segment);
}
