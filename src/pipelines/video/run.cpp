// The stages of the prediction of a video: one class, since each stage passes a job on to the
// next.
#include "pipelines/video/run.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "ops/windows/sums.h"
#include "pipelines/job/stage_threads.h"

namespace cytra::pipelines {
namespace {

constexpr std::size_t kLiveFrames = 64;  // decoded: what came at once while a stream was opened

void expect_masks(const inference::Predictor& predictor) {
  const inference::LoadedModel& model = predictor.model();
  if (model.spatial_dims != 2) {
    throw ConfigError(
        "{}: a model in {} dimensions, but frames have 2", model.path, model.spatial_dims);
  }
  if (model.in_channels != 1 && model.in_channels != 3) {
    throw ConfigError("{}: a model of {} channels; frames have 3, or 1 (their brightness)",
                      model.path,
                      model.in_channels);
  }
  if (predictor.windowed().steps.empty() && !predictor.windowed().decoder->gives_labels())
    throw ConfigError("{}: expected a model that makes masks or labels", model.path);
}

int64_t highest_label(const inference::Predictor& predictor) {
  if (!predictor.windowed().steps.empty()) return 0;
  const int64_t channels = predictor.model().out_channels;
  const bool is_argmax = predictor.windowed().finish.kind == ops::Finish::Kind::argmax;
  return std::max<int64_t>(is_argmax ? channels - 1 : channels, 1);
}

}  // namespace

io::Geometry plain_geometry() {
  io::Geometry geometry;
  geometry.affine[0] = geometry.affine[5] = geometry.affine[10] = 1;
  return geometry;
}

VideoRun::VideoRun(io::VideoSource& source,
                   io::VideoSink& sink,
                   const inference::Predictor& predictor,
                   const VideoOptions& options,
                   StageReport& report,
                   const VideoHooks& hooks)
    : source_(source),
      sink_(sink),
      predictor_(predictor),
      result_{predictor.windowed().steps},
      options_(options),
      hooks_(hooks),
      is_live_(options.live == "on" || (options.live == "auto" && source.info().is_live)),
      cache_(options, source.info(), predictor),
      decoding_(report.add("decode")),
      preprocessing_(report.add("preprocess")),
      selector_(options, source.info(), predictor.windowed(), report),
      inferring_(report.add("infer")),
      postprocessing_(report.add("postprocess")),
      encoding_(report.add("encode")),
      queue_{is_live_ ? 1 : static_cast<std::size_t>(options.queue_frames), options.queue_mb << 20},
      decoded_(is_live_ ? kLiveFrames : queue_.frames, queue_.bytes),
      prepared_(queue_.frames, queue_.bytes),
      predicted_(queue_.frames, queue_.bytes),
      drawn_(queue_.frames, queue_.bytes),
      labels_(at::zeros({source.info().height, source.info().width}, at::kInt)) {
  expect_masks(predictor);
  highest_ = highest_label(predictor);
}

bool VideoRun::Job::needs_model() const {
  return std::ranges::any_of(regions, [](const Region& region) { return region.input != nullptr; });
}

int64_t VideoRun::Job::bytes() const {
  auto sum = std::ssize(frame.rgb);
  for (const Region& region : regions) {
    if (region.input) {
      int64_t count = 1;
      for (const int64_t side : region.input->shape) count *= side;
      sum += count * static_cast<int64_t>(sizeof(float));
    }
    for (const at::Tensor* one : {&region.values, &region.labels})
      sum += one->defined() ? static_cast<int64_t>(one->nbytes()) : 0;
  }
  return sum;
}

void VideoRun::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(state_mutex_);
    has_failed_ = true;
  }
  state_changed_.notify_all();
  for (Jobs* queue : {&decoded_, &prepared_, &predicted_, &drawn_}) queue->fail(error);
}

VideoFigures VideoRun::run() {
  StageThreads threads([this](const std::exception_ptr& error) { fail(error); });
  for (const auto work : {&VideoRun::decode_all,
                          &VideoRun::preprocess_all,
                          &VideoRun::postprocess_all,
                          &VideoRun::encode_all})
    threads.start([this, work] { (this->*work)(); });
  threads.finish([this] { infer_all(); });
  figures_.regions_share /= static_cast<double>(
      std::max<int64_t>(figures_.inferred + figures_.cached + figures_.empty, 1));
  figures_.drift_frames = drift_.frames;
  figures_.drift_mean = drift_.mean();
  figures_.drift_max = drift_.most;
  return figures_;
}

/// Waits until the engine is made of the first windows, which takes seconds. Frames that a live
/// source sends in the meantime stay in the source's buffers; here they would be dropped.
void VideoRun::wait_for_engine(int64_t frames) {
  std::unique_lock lock(state_mutex_);
  while (!has_engine_ && handled_ < frames && !has_failed_ && !is_stopped())
    state_changed_.wait_for(lock, std::chrono::milliseconds(50));
}

void VideoRun::decode_all() {
  const int64_t limit = options_.limit_frames.value_or(INT64_MAX);
  bool is_end = false;
  while (!is_end && !is_stopped()) {
    auto job = std::make_unique<Job>();
    if (figures_.frames_in < limit) {
      const StageWork work(decoding_);
      is_end = !source_.read(job->frame);
    } else {
      is_end = true;
    }
    if (!is_end) ++figures_.frames_in;
    const int64_t bytes = job->bytes();
    if (!is_live_ || is_end) {
      if (!decoded_.push(std::move(job), bytes)) return;
      continue;
    }
    figures_.dropped += decoded_.push_over(
        std::move(job), bytes, [](const JobPointer& dropped, const JobPointer& next) {
          io::SoundPackets sound = std::move(dropped->frame.sound);  // it has no gap
          sound.insert(sound.end(), next->frame.sound.begin(), next->frame.sound.end());
          next->frame.sound = std::move(sound);
        });
    wait_for_engine(figures_.frames_in);
  }
  decoded_.close();
}

/// The box of a frame after the checkpoint's transforms.
std::shared_ptr<const inference::ModelInput> VideoRun::input_of(const io::VideoFrame& frame,
                                                                const FrameBox& box) const {
  const at::Tensor pixels =
      pixels_of(frame.rgb, source_.info().width, box, predictor_.model().in_channels);
  data::Sample sample;
  sample.id = fmt::format("frame {}", frame.number);
  sample.geometries[predictor_.windowed().x_key] = plain_geometry();
  sample.tensors[predictor_.windowed().x_key] =
      to_upright(pixels, source_.info().turns).contiguous();
  auto input = std::make_shared<const inference::ModelInput>(
      predictor_.windowed().transforms.apply(std::move(sample), predictor_.windowed().x_key));
  predictor_.windowed().check(*input);
  return input;
}

/// Gets the labels of a frame's regions from the cache; else prepares what is predicted.
void VideoRun::look_up(Job& job) {
  for (const FrameBox& box : job.choice.boxes) {
    Region& region = job.regions.emplace_back();
    region.box = box;
    if (cache_.is_on()) {
      region.key = cache_.key(job.frame.rgb, box);
      region.labels = cache_.find(region.key);
    }
    if (!region.labels.defined()) region.input = input_of(job.frame, box);
  }
}

void VideoRun::preprocess_all() {
  while (std::optional<JobPointer> next = decoded_.pop()) {
    if (is_stopped()) break;
    JobPointer job = std::move(*next);
    if (!job->is_end()) {
      const StageWork work(preprocessing_);
      job->choice = selector_.choose(job->frame.rgb);
      if (job->choice.is_inferred || job->choice.is_measured) look_up(*job);
    }
    const int64_t bytes = job->bytes();
    if (!prepared_.push(std::move(job), bytes)) break;
  }
  decoded_.close();  // after a stop, no stage takes more
  prepared_.close();
}

/// Predicts regions whose inputs have one shape.
void VideoRun::predict(const std::vector<Region*>& regions) {
  std::vector<const inference::ModelInput*> inputs;
  for (const Region* region : regions) inputs.push_back(region->input.get());
  const inference::WindowedModel& model = predictor_.windowed();
  const inference::SlidingWindowOptions windows = model.windows(*inputs[0]);
  if (regions.size() == 1) {
    regions[0]->values = model.run(*inputs[0], windows);
  } else {
    model.run(inputs, windows, [&](std::size_t i, const at::Tensor& values) {
      if (!values.defined()) {
        throw DataError(inputs[i]->sample.id +
                        ": the model makes values of it that are NaN or infinite");
      }
      regions[i]->values = values.cpu().clone();
    });
  }
}

/// Predicts what waits for it in the jobs, and passes all on.
void VideoRun::infer(std::vector<JobPointer>& jobs) {
  std::map<std::vector<int64_t>, std::vector<Region*>> by_shape;
  int64_t frames = 0;
  for (const JobPointer& job : jobs) {
    if (job->needs_model()) ++frames;
    for (Region& region : job->regions) {
      if (region.input) by_shape[region.input->shape].push_back(&region);
    }
  }
  if (frames > 0) {
    const StageWork work(inferring_, frames);
    for (const auto& [shape, regions] : by_shape) predict(regions);
  }
  {
    const std::lock_guard lock(state_mutex_);
    has_engine_ = has_engine_ || frames > 0;
    handled_ += std::ssize(jobs);
  }
  state_changed_.notify_all();
  for (JobPointer& job : jobs) {
    const int64_t bytes = job->bytes();
    predicted_.push(std::move(job), bytes);
  }
  jobs.clear();
}

void VideoRun::infer_all() {
  const int64_t batch_size = is_live_ ? 1 : options_.batch_size;
  const auto most = static_cast<std::size_t>(4 * batch_size);  // with those that need no model
  std::vector<JobPointer> jobs;
  int64_t waiting = 0;
  const auto flush = [&] {
    infer(jobs);
    waiting = 0;
  };
  while (std::optional<JobPointer> next = prepared_.pop()) {
    if (is_stopped()) break;
    JobPointer job = std::move(*next);
    if (job->needs_model()) ++waiting;
    jobs.push_back(std::move(job));
    if (waiting >= batch_size || jobs.size() >= most || waiting == 0) flush();
  }
  if (!is_stopped()) flush();
  prepared_.close();
  predicted_.close();
}

void VideoRun::encode_all() {
  io::SoundPackets rest;
  while (std::optional<JobPointer> next = drawn_.pop()) {
    const Job& job = **next;
    if (job.is_end()) {
      rest = job.frame.sound;
      continue;
    }
    {
      const StageWork work(encoding_);
      sink_.write(job.frame);
    }
    ++figures_.written;
    figures_.last_s = source_.info().time_base.seconds(job.frame.pts);
    if (hooks_.progress) hooks_.progress(figures_.written);
  }
  const StageWork work(encoding_, 0);
  sink_.finish(rest);
}

}  // namespace cytra::pipelines
