// `process_video`: a trained model over the frames of a video, into a video.
#include <atomic>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "app/predict/config.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/table.h"
#include "device/device.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "io/fingerprint.h"
#include "io/video_stream.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/video/video.h"
#include "samples/movie.h"

namespace cytra::app {
namespace {

struct VideoFileOptions : pipelines::VideoOptions {
  std::optional<std::string> input, output, prometheus;
  io::VideoSinkOptions encoding;
  double threshold = 0.5;
  void visit(auto& v) {
    v("input", input, "a video, a FIFO, or an address that FFmpeg reads (rtsp://...)");
    v("output", output, "the video to write: .mp4, .mov, .mkv ...");
    v("threshold", threshold, "threshold of a mask's probability", 0, 1);
    VideoOptions::visit(v);
    v("codec", encoding.codec, "auto: libx264, else mpeg4; or an encoder of FFmpeg by its name");
    v("preset",
      encoding.preset,
      "preset of libx264: slower ones make smaller files",
      {"ultrafast",
       "superfast",
       "veryfast",
       "faster",
       "fast",
       "medium",
       "slow",
       "slower",
       "veryslow"});
    v("crf",
      encoding.crf,
      "quality of libx264: lower is better and makes larger files; 0: lossless",
      0,
      51);
    v("prometheus",
      prometheus,
      "also write the figures of the stages to this file, for Prometheus");
  }
};

struct VideoConfig : CommonConfig, inference::ModelConfig {
  VideoFileOptions video;
  OneProcessOptions trainer;
  using ModelConfig::performance;
  void visit(auto& v) {
    ModelConfig::visit(v);
    v("video", video, "what to read, to predict and to write");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit_names(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "of predict");
  }
};

const bool process_video_is_added = add_program<VideoConfig>("process_video");

/// Loads the predictor; of a model with several heads, the first. Sets `precision`.
inference::Predictor video_predictor(const VideoConfig& config, std::string& precision) {
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  const inference::Subject subject =
      inference::load_subject(config, device, config.trainer.precision);
  std::vector<std::string> heads = subject.heads();
  if (!heads.empty()) {
    heads.resize(1);
    log::info("{}: only its head {} is used", subject.first().path, heads.front());
  }
  inference::PredictorOptions options;
  options.threshold = config.video.threshold;
  options.original_grid = true;
  precision = subject.precision;
  return inference::predictors_of(subject, config, heads, options).front().predictor;
}

/// The settings that labels depend on, for the cache, without the models and the Predictor's own.
std::string video_settings(const cli::Run& run) {
  std::string text;
  for (const char* section : {"inference_args", "tta", "trainer", "performance", "model"}) {
    if (const config::Node* node = run.config.find(section)) text += config::to_json(*node);
    text += ' ';
  }
  return io::fingerprint(text);
}

/// Adds the figures under the names of the report and of the results.
void add_figures(const pipelines::VideoFigures& figures,
                 bool has_cache,
                 pipelines::StageReport& report,
                 cli::Results& results) {
  const auto count = [&](const std::string& name, const std::string& help, int64_t value) {
    report.count(name, help, value);
    results.add(name, config::Node::make_integer(value));
  };
  count("frames_in", "frames that were decoded", figures.frames_in);
  count("frames_inferred", "frames that the model saw, whole or in part", figures.inferred);
  count("frames_reused", "frames that took over the mask before them", figures.reused);
  if (has_cache) count("frames_cached", "frames whose labels were in the cache", figures.cached);
  if (figures.empty + figures.regions > 0) {
    count("frames_empty", "frames in which the detector found nothing", figures.empty);
    count("regions", "regions that the detector found", figures.regions);
    results.add("regions_share", figures.regions_share);
  }
  count("frames_dropped", "frames of a live source that came too fast", figures.dropped);
  count("frames_written", "frames in the output", figures.written);
  if (figures.partial > 0)
    results.add("frames_partial", config::Node::make_integer(figures.partial));
  if (figures.reused > 0)
    results.add("longest_gap", config::Node::make_integer(figures.longest_gap));
  if (figures.drift_frames > 0) {
    results.add("drift_frames", config::Node::make_integer(figures.drift_frames));
    results.add("drift_mean", figures.drift_mean);
    results.add("drift_max", figures.drift_max);
  }
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

int process_video(cli::Run run, const VideoConfig& config) {
  VideoFileOptions options = config.video;
  options.settings = video_settings(run);
  if (!options.input || !options.output) {
    throw ConfigError(
        "expected an input and an output: process_video IN.mp4 OUT.mp4 "
        "checkpoint.ckpt_path=logs/.../best.ckpt");
  }
  if (are_same_file(*options.input, *options.output))  // an address is no file
    throw ConfigError(*options.output + ": the input itself; expected another file as output");
  expect_replaceable(*options.output);
  watch_signals();
  device::prepare(config.performance);
  const auto stop = [] { return signal_received() != 0; };
  const auto source = io::open_video_source(*options.input, stop);
  remove_stale_temporaries(folder_of(*options.output));  // of processes that were killed
  const auto sink = io::create_video(*options.output, *source, options.encoding);
  for (const std::string& note : sink->notes()) log::warn("{}: {}", *options.output, note);
  std::string precision;
  const inference::Predictor predictor = video_predictor(config, precision);
  options.settings += precision;
  const io::VideoInfo& info = source->info();
  log::info("{}: {}x{}{}, {:.3f} frames per second, {} sound tracks, on {}",
            *options.input,
            info.width,
            info.height,
            info.turns == 0 ? "" : fmt::format(" turned by {} degrees", 90 * info.turns),
            info.frame_rate,
            info.sound_tracks,
            device::describe(predictor.windowed().device));

  pipelines::StageReport report("process_video");
  Progress progress("frames", std::min(info.frames, options.limit_frames.value_or(info.frames)));
  const Stopwatch stopwatch;
  const pipelines::VideoFigures figures =
      pipelines::run_video(*source, *sink, predictor, options, report, {stop, [&](int64_t frames) {
                                                                          progress.update(frames);
                                                                        }});
  report.finish();
  progress.finish();
  const double seconds = stopwatch.seconds();
  cli::Results results(run.json);
  add_figures(figures, options.cache_dir.has_value(), report, results);
  results.add("seconds", std::round(seconds * 1e3) / 1e3);
  results.add("fps", std::round(static_cast<double>(figures.written) / seconds * 100) / 100);
  const std::string problem = source->problem();
  const int signal = signal_received();
  if (figures.written > 0) results.add("output", *options.output);
  report.log_times();
  if (options.prometheus) report.write_prometheus(*options.prometheus);
  if (figures.dropped > 0)
    log::warn("{} frames were dropped: they came faster than they were predicted", figures.dropped);
  if (signal != 0) {
    log::warn("interrupted: {}",
              figures.written == 0
                  ? "nothing was written"
                  : fmt::format("{} ends at {:.3f} s", *options.output, figures.last_s));
    results.print();
    return signal_exit_code(signal);
  }
  results.print();
  if (figures.written == 0)
    throw DataError(
        "{}: no frame could be decoded{}{}", *options.input, problem.empty() ? "" : ": ", problem);
  if (problem.empty()) return 0;
  log::warn("{}: {}; the last frame that could be decoded is that of {:.3f} s",
            *options.input,
            problem,
            figures.last_s);
  return exit_code(DataError(problem));
}

/// Measures the speed by the times at which frames were written. The first batch does not count,
/// as it has waited for the engine.
class FrameClock {
 public:
  explicit FrameClock(int64_t batch) : batch_(batch) {}
  void written(int64_t frames) {
    last_s_ = stopwatch_.seconds();
    if (frames <= batch_) first_s_ = last_s_;
    frames_ = frames;
  }
  bool is_over(double seconds) const { return frames_ > batch_ && stopwatch_.seconds() > seconds; }
  /// Frames per second; where there is one batch only, with all the time before it.
  double rate() const {
    if (frames_ <= batch_) return static_cast<double>(frames_) / stopwatch_.seconds();
    return static_cast<double>(frames_ - batch_) / (last_s_ - first_s_);
  }

 private:
  const int64_t batch_;
  const Stopwatch stopwatch_;
  double first_s_ = 0, last_s_ = 0;
  std::atomic<int64_t> frames_{0};
};

/// Runs `process_video --benchmark`: frames of the usual sizes are generated, processed, encoded
/// and thrown away.
int benchmark_video(cli::Run run, const VideoConfig& config) {
  struct Size {
    const char* name;
    int64_t width, height;
  };
  constexpr Size kSizes[] = {
      {"1080p", 1920, 1080}, {"4K", 3840, 2160}, {"6K", 6144, 3456}, {"8K", 7680, 4320}};
  constexpr int64_t kFrames = 30;
  constexpr double kSeconds = 60;  // of each size; two batches at least
  watch_signals();
  device::prepare(config.performance);
  std::string precision;
  const inference::Predictor predictor = video_predictor(config, precision);
  const auto stop = [] { return signal_received() != 0; };
  cli::Results results(run.json);
  pipelines::VideoOptions options = config.video;
  options.cache_dir.reset();  // the model is measured
  std::vector<std::vector<std::string>> rows{{"size",
                                              "pixels",
                                              "batch",
                                              "precision",
                                              "frames",
                                              "FPS",
                                              "inferred",
                                              "reused",
                                              "slowest stage"}};
  for (const Size& size : kSizes) {
    samples::MovieOptions movie;
    movie.width = size.width;
    movie.height = size.height;
    movie.frames = config.video.limit_frames.value_or(kFrames);
    samples::Movie source(movie);
    const auto sink = io::create_video("", source, config.video.encoding);
    pipelines::StageReport report("process_video");
    Progress progress(size.name, movie.frames);
    FrameClock clock(options.batch_size);
    const pipelines::VideoFigures figures =
        pipelines::run_video(source,
                             *sink,
                             predictor,
                             options,
                             report,
                             {[&] { return stop() || clock.is_over(kSeconds); },
                              [&](int64_t frames) {
                                clock.written(frames);
                                progress.update(frames);
                              }});
    report.finish();
    progress.finish();
    if (const int signal = signal_received(); signal != 0) return signal_exit_code(signal);
    const double fps = clock.rate();
    const std::string bottleneck = report.bottleneck();
    rows.push_back({size.name,
                    fmt::format("{}x{}", size.width, size.height),
                    std::to_string(options.batch_size),
                    precision,
                    std::to_string(figures.written),
                    fmt::format("{:.2f}", fps),
                    std::to_string(figures.inferred),
                    std::to_string(figures.reused),
                    bottleneck.substr(0, bottleneck.find(' '))});
    results.add(std::string("fps_") + size.name, std::round(fps * 100) / 100);
  }
  log::info("{} on {}, {}:\n{}",
            predictor.model().path,
            device::describe(predictor.windowed().device),
            predictor.engine(),
            format_table(rows));
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_process_video(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::process_video);
}

extern "C" int cytra_benchmark_video(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::benchmark_video);
}
