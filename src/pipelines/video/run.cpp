// The stages of the prediction of a video: one class, since each stage passes a job on to the
// next.
#include "pipelines/video/run.h"

#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "ops/windows/sums.h"
#include "pipelines/job/stage_threads.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kQueueBytes = int64_t{256} << 20;  // each: two frames of 8K, with their tensors
constexpr std::size_t kQueueFrames = 16;
constexpr std::size_t kLiveFrames = 64;  // decoded: what came at once while a stream was opened

void expect_masks(const inference::Predictor& predictor) {
  const inference::LoadedModel& model = predictor.model();
  if (model.spatial_dims != 2) {
    throw ConfigError(fmt::format(
        "{}: a model in {} dimensions, but frames have 2", model.path, model.spatial_dims));
  }
  if (model.in_channels != 1 && model.in_channels != 3) {
    throw ConfigError(
        fmt::format("{}: a model of {} channels; frames have 3, or 1 (their brightness)",
                    model.path,
                    model.in_channels));
  }
  if (predictor.windowed().steps.empty() && !predictor.windowed().decoder->gives_labels())
    throw ConfigError(fmt::format("{}: expected a model that makes masks or labels", model.path));
}

int64_t highest_label(const inference::Predictor& predictor) {
  if (!predictor.windowed().steps.empty()) return 0;
  const int64_t channels = predictor.model().out_channels;
  const bool is_argmax = predictor.windowed().finish.kind == ops::Finish::Kind::argmax;
  return std::max<int64_t>(is_argmax ? channels - 1 : channels, 1);
}

/// Keeps the labels of a frame.
class LabelsOfFrame final : public inference::ResultOutput {
 public:
  explicit LabelsOfFrame(at::Tensor& labels) : labels_(labels) {}
  void take(const inference::ImageResult& result, const at::Tensor& rows) override {
    if (!result.has_labels())
      throw std::logic_error("video frames are predicted in the form that predict calls mask");
    labels_ = result.labels(rows).to(at::kInt);
  }
  void finish(inference::ResultFiles& /*files*/) override {}

 private:
  at::Tensor& labels_;
};

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
      result_{predictor.windowed().steps, 0.5, /*original_grid=*/true},
      options_(options),
      hooks_(hooks),
      is_live_(options.live == "on" || (options.live == "auto" && source.info().is_live)),
      selector_(options, source.info()),
      cache_(options, source.info(), predictor),
      decoding_(report.add("decode")),
      preprocessing_(report.add("preprocess")),
      inferring_(report.add("infer")),
      postprocessing_(report.add("postprocess")),
      encoding_(report.add("encode")),
      decoded_(is_live_ ? kLiveFrames : kQueueFrames, kQueueBytes),
      prepared_(is_live_ ? 1 : kQueueFrames, kQueueBytes),
      predicted_(is_live_ ? 1 : kQueueFrames, kQueueBytes),
      drawn_(is_live_ ? 1 : kQueueFrames, kQueueBytes),
      labels_(at::zeros({source.info().height, source.info().width}, at::kInt)) {
  expect_masks(predictor);
  if (options.min_confidence > 0)
    early_exit_.emplace(predictor, options.min_confidence, options.scales);
  highest_ = highest_label(predictor);
}

int64_t VideoRun::Job::bytes() const {
  auto sum = static_cast<int64_t>(frame.rgb.size());
  if (input) {
    int64_t count = 1;
    for (const int64_t side : input->shape) count *= side;
    sum += count * static_cast<int64_t>(sizeof(float));
  }
  for (const at::Tensor* one : {&values, &exact, &labels})
    sum += one->defined() ? static_cast<int64_t>(one->nbytes()) : 0;
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
  figures_.drift_frames = drift_.frames;
  figures_.drift_mean = drift_.mean();
  figures_.drift_max = drift_.most;
  figures_.exit_drift_frames = exit_drift_.frames;
  figures_.exit_drift_mean = exit_drift_.mean();
  figures_.exit_drift_max = exit_drift_.most;
  if (early_exit_) {
    figures_.windows = early_exit_->windows();
    figures_.windows_skipped = early_exit_->skipped();
  }
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
std::shared_ptr<const inference::ModelInput> VideoRun::input_of(const Job& job) const {
  const FrameBox& box = job.choice.box;
  const int64_t width = source_.info().width;
  at::Tensor pixels;
  if (predictor_.model().in_channels == 1) {
    pixels = at::empty({1, box.height, box.width}, at::kByte);
    luma_of(job.frame.rgb.data(), width, box, pixels.mutable_data_ptr<uint8_t>());
  } else {
    const at::Tensor frame =
        at::from_blob(const_cast<unsigned char*>(job.frame.rgb.data()),  // is only read
                      {source_.info().height, width, 3},
                      at::kByte);
    pixels = frame.narrow(0, box.y, box.height)
                 .narrow(1, box.x, box.width)
                 .permute({2, 0, 1})
                 .contiguous();
  }
  data::Sample sample;
  sample.id = fmt::format("frame {}", job.frame.number);
  sample.geometries[predictor_.windowed().x_key] = plain_geometry();
  sample.tensors[predictor_.windowed().x_key] =
      to_upright(pixels, source_.info().turns).contiguous();
  auto input = std::make_shared<const inference::ModelInput>(
      predictor_.windowed().transforms.apply(std::move(sample), predictor_.windowed().x_key));
  predictor_.windowed().check(*input);
  return input;
}

/// Gets the labels of a frame from the cache; else prepares what is predicted.
void VideoRun::look_up(Job& job) {
  if (cache_.is_on()) {
    job.key = cache_.key(job.frame.rgb, job.choice.box);
    job.labels = cache_.find(job.key);
  }
  if (!job.labels.defined()) job.input = input_of(job);
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

void VideoRun::predict_early(const std::vector<Job*>& waiting,
                             const std::vector<const inference::ModelInput*>& inputs,
                             const inference::SlidingWindowOptions& windows) {
  const std::vector<at::Tensor> values = early_exit_->predict(inputs);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    waiting[i]->values = values[i];
    if (options_.measure_drift > 0 && exits_++ % options_.measure_drift == 0)
      waiting[i]->exact = predictor_.windowed().run(*inputs[i], windows);
  }
}

/// Predicts the jobs that wait for it, whose inputs have one shape, and passes all on.
void VideoRun::infer(std::vector<JobPointer>& jobs) {
  std::vector<Job*> waiting;
  std::vector<const inference::ModelInput*> inputs;
  for (const JobPointer& job : jobs) {
    if (!job->input) continue;
    waiting.push_back(job.get());
    inputs.push_back(job->input.get());
  }
  if (!waiting.empty()) {
    const StageWork work(inferring_, static_cast<int64_t>(waiting.size()));
    const inference::SlidingWindowOptions windows = predictor_.windowed().windows(*inputs[0]);
    if (early_exit_) {
      predict_early(waiting, inputs, windows);
    } else if (waiting.size() == 1) {
      waiting[0]->values = predictor_.windowed().run(*inputs[0], windows);
    } else {
      predictor_.windowed().run(inputs, windows, [&](std::size_t i, const at::Tensor& values) {
        if (!values.defined()) {
          throw DataError(inputs[i]->sample.id +
                          ": the model makes values of it that are NaN or infinite");
        }
        waiting[i]->values = values.cpu().clone();
      });
    }
  }
  {
    const std::lock_guard lock(state_mutex_);
    has_engine_ = has_engine_ || !waiting.empty();
    handled_ += static_cast<int64_t>(jobs.size());
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
  std::vector<int64_t> shape;
  int64_t waiting = 0;
  const auto flush = [&] {
    infer(jobs);
    waiting = 0;
  };
  while (std::optional<JobPointer> next = prepared_.pop()) {
    if (is_stopped()) break;
    JobPointer job = std::move(*next);
    if (job->input) {
      if (waiting > 0 && job->input->shape != shape) flush();
      shape = job->input->shape;
      ++waiting;
    }
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

/// (h,w) int32 of the box of a job, as stored.
at::Tensor VideoRun::labels_of(const Job& job, const at::Tensor& values) const {
  at::Tensor labels;
  inference::ImageResult::Outputs outputs;
  outputs.push_back(std::make_unique<LabelsOfFrame>(labels));
  inference::ImageResult result(predictor_, result_, job.input, std::move(outputs));
  result.take(values);
  result.finish();
  if (labels.size(0) > 1) {  // masks that may overlap: the last one is seen
    const at::Tensor numbers =
        at::arange(1, labels.size(0) + 1, at::TensorOptions(at::kInt)).view({-1, 1, 1});
    labels = (labels.ne(0) * numbers).amax(0, true);
  }
  return to_stored(labels[0], source_.info().turns);
}

void VideoRun::Drift::add(const at::Tensor& shown, const at::Tensor& exact) {
  const at::Tensor is_any = shown.ne(0).logical_or(exact.ne(0));
  const auto whole = is_any.sum().item<int64_t>();
  const auto common = shown.eq(exact).logical_and(is_any).sum().item<int64_t>();
  const double drift =
      whole == 0 ? 0 : 1 - static_cast<double>(common) / static_cast<double>(whole);
  ++frames;
  sum += drift;
  most = std::max(most, drift);
}

/// Pastes the result of a job into the labels of the frame.
void VideoRun::paste(Job& job) {
  const FrameBox& box = job.choice.box;
  at::Tensor labels = job.labels;
  if (!labels.defined()) {
    labels = labels_of(job, job.values);
    if (cache_.is_on()) cache_.keep(job.key, labels);
    if (job.exact.defined()) exit_drift_.add(labels, labels_of(job, job.exact));
  }
  const auto part = [&](const at::Tensor& whole) {
    return whole.narrow(0, box.y, box.height).narrow(1, box.x, box.width);
  };
  if (selector_.mask().defined()) labels = labels * part(selector_.mask());
  if (job.choice.is_measured) return drift_.add(part(labels_), labels);
  part(labels_).copy_(labels);
}

void VideoRun::postprocess_all() {
  while (std::optional<JobPointer> next = predicted_.pop()) {
    JobPointer job = std::move(*next);
    if (!job->is_end()) {
      const StageWork work(postprocessing_);
      const bool is_cached = job->labels.defined();
      if (is_cached || job->values.defined()) paste(*job);
      const FrameSelector::Choice& choice = job->choice;
      gap_ = choice.is_inferred ? 0 : gap_ + 1;
      ++(!choice.is_inferred ? figures_.reused : is_cached ? figures_.cached : figures_.inferred);
      if (choice.is_inferred && !(choice.box == selector_.whole())) ++figures_.partial;
      figures_.longest_gap = std::max(figures_.longest_gap, gap_);
      const int32_t* labels = labels_.const_data_ptr<int32_t>();
      if (options_.output_kind == "mask") {
        paint_labels(labels, labels_.numel(), highest_, job->frame.rgb.data());
      } else {
        draw_labels(labels, labels_.size(0), labels_.size(1), job->frame.rgb.data());
      }
      job->input.reset();
      for (at::Tensor* one : {&job->values, &job->exact, &job->labels}) one->reset();
    }
    const int64_t bytes = job->bytes();
    if (!drawn_.push(std::move(job), bytes)) break;
  }
  drawn_.close();
}

}  // namespace cytra::pipelines
