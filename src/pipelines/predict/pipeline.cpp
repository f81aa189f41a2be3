// Reads images, predicts and writes them; work.h has what is different for each kind of result.
#include "pipelines/predict/pipeline.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "base/signals.h"
#include "device/error.h"
#include "pipelines/job/stage_threads.h"
#include "pipelines/job/stamp.h"

namespace cytra::pipelines {
namespace {

constexpr std::size_t kReadAhead = 2;   // images
constexpr std::size_t kRowsAhead = 16;  // parts of images that wait to be written
constexpr int64_t kRowBytesAhead = int64_t{128} << 20;

int64_t quarter_of_memory() {
  return available_memory().bytes / 4;
}

/// Ends the computing of an image whose results can't be written; the writer has reported why.
struct Abandoned {};

}  // namespace

PredictPipeline::PredictPipeline(PredictRun run, PredictWork& work)
    : run_(std::move(run)), work_(work), ready_(kReadAhead, quarter_of_memory()) {}

void PredictPipeline::run(const std::vector<data::Sample>& inputs, Progress& progress) {
  shares_rows_ = work_.can_share_rows() && std::ssize(inputs) < run_.processes.place().size;
  work_.begin(run_, shares_rows_);
  // Processes that share the rows of an image join them in the images' order.
  const int64_t count = shares_rows_ ? 1 : writer_threads();
  const int64_t ahead = std::min(quarter_of_memory(), kRowBytesAhead) / count;
  for (int64_t i = 0; i < count; ++i) rows_.emplace_back(kRowsAhead, ahead);
  StageThreads threads([this](const std::exception_ptr& error) {
    ready_.fail(error);
    for (Queue<Rows>& rows : rows_) rows.fail(error);
  });
  threads.start([&] {
    read_all(inputs);
    ready_.close();
  });
  for (Queue<Rows>& rows : rows_) threads.start([&] { write_all(rows); });
  threads.finish([&] {
    compute_all(progress);
    for (Queue<Rows>& rows : rows_) rows.close();
  });
}

void PredictPipeline::finish(const std::vector<data::Sample>& inputs,
                             const DoneRecord::Others& others) {
  for (const DoneRecord::OtherImage& image : others.images)
    done_[image.order] = {image.name, image.stamp};
  std::vector<PredictWork::Done> images;
  for (const auto& [order, known] : done_)
    images.push_back({inputs.at(static_cast<std::size_t>(order.at(0))), known[0], known[1]});
  work_.finish(images, run_.tally.results);
}

bool PredictPipeline::attempt(const std::string& id,
                              Phase phase,
                              const std::function<void()>& work) {
  const int code = run_.tally.attempt(id, phase, run_.data.on_error == "fail", work);
  if (code != 0) run_.record.add_failed(id, code);
  return code == 0;
}

void PredictPipeline::read_all(const std::vector<data::Sample>& inputs) {
  const std::string key = work_.source_key();
  const auto source_of = [&](const data::Sample& sample) {
    const auto source = sample.sources.find(key);
    return source == sample.sources.end() ? data::Source() : source->second;
  };
  std::vector<std::string> stems;
  for (const data::Sample& input : inputs) stems.push_back(names_.next(source_of(input)));
  const training::ProcessPlace& place = run_.processes.place();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!shares_rows_ && static_cast<int64_t>(i) % place.size != place.rank) continue;
    std::vector<data::Sample> scenes;
    std::string content;  // a fingerprint that all scenes and frames share
    if (!attempt(inputs[i].id, Phase::reading, [&] {
          scenes = scenes_of(inputs[i], key, work_.parts());
          content = content_of(inputs[i], work_.target_key());
        }))
      continue;
    const auto count = [&](std::size_t parts) {
      const std::lock_guard lock(run_.tally.mutex);
      run_.tally.images += static_cast<int64_t>(parts) - 1;
    };
    count(scenes.size());
    for (std::size_t s = 0; s < scenes.size(); ++s) {
      const data::Source source = source_of(scenes[s]);
      const std::string stem = scenes.size() == 1 ? stems[i]
                               : source.selection.scene >= 0
                                   ? names_.scene(stems[i], source.selection.scene)
                                   : names_.next(source);  // a plate has places
      Frames frames;
      if (!attempt(scenes[s].id, Phase::reading, [&] {
            frames = frames_of(scenes[s], key, work_.parts());
          }))
        continue;
      count(frames.size());
      const std::vector<int64_t> order{static_cast<int64_t>(i), static_cast<int64_t>(s)};
      if (!read_frames({scenes[s], stem, content, order}, frames)) return;
    }
  }
}

bool PredictPipeline::read_frames(const Scene& scene, const Frames& frames) {
  std::shared_ptr<JoinedFrames> joined;
  if (frames.size() > 1) {
    if (!attempt(
            scene.sample.id, Phase::reading, [&] { joined = joined_of(scene, frames.size()); }))
      return true;
    if (joined && is_done(*joined)) return true;
    if (shares_rows_ && !run_.processes.is_first()) joined.reset();
  }
  const std::string key = work_.source_key();
  for (std::size_t t = 0; t < frames.size(); ++t) {
    const JobPointer job = work_.new_job();
    job->sample = frames[t];
    job->content = scene.content;
    job->timepoint = static_cast<int64_t>(t);
    job->order = scene.order;
    job->order.push_back(job->timepoint);
    job->stem =
        run_.folder + "/" +
        (frames.size() == 1 ? scene.stem : names_.frame(scene.stem, frames[t].sources[key]));
    job->joined = joined;
    if (!read(job)) return false;
  }
  return true;
}

std::shared_ptr<JoinedFrames> PredictPipeline::joined_of(const Scene& scene, std::size_t frames) {
  const auto source = scene.sample.sources.find(work_.source_key());
  if (source == scene.sample.sources.end()) return nullptr;
  if (run_.options.frames == "apart") {
    run_.record.remove_outdated(scene.stem, {});  // a run may have joined them
    return nullptr;
  }
  const std::string stem = run_.folder + "/" + scene.stem;
  expect_replaceable(stem + joined_format(run_.options.format, source->second.path).output_ending);
  return std::make_shared<JoinedFrames>(
      scene.sample.id,
      stem,
      stamp_of(scene.sample, scene.content, run_.settings + " together", work_.target_key()),
      static_cast<int64_t>(frames));
}

bool PredictPipeline::is_done(const JoinedFrames& joined) {
  PredictJob whole;
  whole.stem = joined.stem();
  whole.stamp = joined.stamp();
  const auto files = run_.options.resume ? work_.done_before(whole) : std::nullopt;
  if (!files) return false;
  if (shares_rows_ && !run_.processes.is_first()) return true;
  if (!run_.processes.is_first())  // who tells
    run_.record.add({joined.name(), joined.image(), joined.stamp(), *files, "", joined.frames()});
  count_earlier(joined.frames(), *files);
  return true;
}

void PredictPipeline::count_earlier(int64_t images, const inference::ResultFiles& files) {
  const std::lock_guard lock(run_.tally.mutex);
  for (const auto& [kind, path] : files) run_.tally.results.add_item(kind, path);
  run_.tally.done += images;
  run_.tally.resumed += images;
}

bool PredictPipeline::read(const JobPointer& job) {
  const data::Sample& frame = job->sample;
  std::optional<inference::ResultFiles> earlier;
  int64_t bytes = 0;
  if (!attempt(frame.id, Phase::reading, [&] {
        const auto source = frame.sources.find(work_.source_key());
        if (source != frame.sources.end()) job->path = source->second.path;  // else made of others
        job->stamp = stamp_of(frame, job->content, run_.settings, work_.target_key());
        if ((earlier = done_before(*job))) return;
        const StageWork stage(run_.stages.read);
        bytes = work_.read(*job);
      })) {
    if (job->joined) end_frame(*job, nullptr);
    return true;
  }
  if (earlier && job->joined) end_frame(*job, &*earlier);
  return earlier.has_value() || ready_.push(job, bytes);
}

std::optional<inference::ResultFiles> PredictPipeline::done_before(const Job& job) {
  const auto files = run_.options.resume ? work_.done_before(job) : std::nullopt;
  if (!files) return std::nullopt;
  if (!run_.processes.is_first())  // who tells
    run_.record.add_again({job.name(), job.id(), job.stamp, {}, "", 1, job.order});
  count_earlier(1, job.joined ? inference::ResultFiles() : *files);
  const std::lock_guard lock(turns_);
  note_done(job);
  return files;
}

void PredictPipeline::compute_all(Progress& progress) {
  // A budget of memory is planned for one image.
  const auto batch_size =
      static_cast<std::size_t>(run_.options.max_memory_mb ? 1 : run_.data.batch_size);
  int64_t done = 0;
  std::vector<JobPointer> batch;
  const auto flush = [&] {
    if (batch.empty()) return;
    compute(batch, progress);
    if (run_.profile != nullptr) run_.profile->end_step();
    done += std::ssize(batch);
    batch.clear();
    progress.update(done);
  };
  int64_t turn = 0;
  while (std::optional<JobPointer> job = ready_.pop()) {
    (*job)->turn = turn++;
    if (!batch.empty() && !work_.fits(*batch[0], **job)) flush();
    batch.push_back(std::move(*job));
    const bool is_alone = !work_.fits(*batch[0], *batch[0]);
    if (is_alone || batch.size() == batch_size) flush();
  }
  flush();
}

void PredictPipeline::compute(const std::vector<JobPointer>& jobs, Progress& progress) {
  const StageWork stage(run_.stages.predict, std::ssize(jobs));
  const auto compute_some = [&](const std::vector<JobPointer>& some) {
    work_.compute(some, progress, [this](const JobPointer& job, const at::Tensor& rows, bool kept) {
      send(job, rows, kept);
    });
  };
  if (jobs.size() > 1) {
    try {
      device::guarded([&] { compute_some(jobs); });
    } catch (const std::exception& error) {  // each by itself tells which it is
      if (dynamic_cast<const IoError*>(&error) != nullptr) throw;
      log::debug("{} and {} more: {}; each is predicted by itself",
                 jobs[0]->id(),
                 jobs.size() - 1,
                 error.what());
    }
  }
  for (const JobPointer& job : jobs) {
    try {
      if (!job->is_computed && !attempt(job->id(), Phase::computing, [&] { compute_some({job}); }))
        job->is_abandoned = true;
    } catch (const Abandoned&) {
    }
    const StagePause pause(run_.stages.predict);
    rows_of(*job).push({job, {}, false});
  }
}

void PredictPipeline::send(const JobPointer& job, const at::Tensor& values, bool is_kept) {
  if (job->is_abandoned) throw Abandoned();
  const StagePause pause(run_.stages.predict);  // while the writer has no room
  rows_of(*job).push({job, values, is_kept}, static_cast<int64_t>(values.nbytes()));
}

Queue<PredictPipeline::Rows>& PredictPipeline::rows_of(const Job& job) {
  return rows_[static_cast<std::size_t>(job.turn) % rows_.size()];
}

void PredictPipeline::write_all(Queue<Rows>& of_thread) {
  while (std::optional<Rows> rows = of_thread.pop()) {
    Job& job = *rows->job;
    const bool is_last = !rows->values.defined();
    const StageWork stage(run_.stages.write, is_last ? 1 : 0);
    if (is_last) {
      work_.join(job);
      finish(rows->job);
    } else if (!job.is_abandoned && !attempt(job.id(), Phase::writing, [&] {
                 work_.take(job, rows->values, rows->is_kept);
               })) {
      job.is_abandoned = true;
    }
  }
}

void PredictPipeline::finish(const JobPointer& job) {
  // A signal ends the program after the work in progress is recorded; nothing new is begun then.
  while (signal_received() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ++run_.tally.finishing;
  if (!job->is_abandoned && !attempt(job->id(), Phase::writing, [&] { work_.write(*job); }))
    job->is_abandoned = true;
  const std::lock_guard lock(turns_);
  finished_[job->turn] = job;
  for (auto next = finished_.begin(); next != finished_.end() && next->first == turn_; ++turn_) {
    Job& own = *next->second;
    if (!own.is_abandoned && !attempt(own.id(), Phase::writing, [&] { book(own); }))
      own.is_abandoned = true;
    if (own.joined) end_frame(own, own.is_abandoned ? nullptr : &own.files);
    --run_.tally.finishing;
    next = finished_.erase(next);
  }
}

void PredictPipeline::book(Job& job) {
  const std::lock_guard lock(run_.tally.mutex);
  work_.book(job);
  DoneImage image{job.name(), job.id(), job.stamp, job.files, job.more};
  if (!run_.processes.is_alone()) image.order = job.order;
  if (!job.joined)
    for (const auto& [kind, path] : job.files) run_.tally.results.add_item(kind, path);
  run_.record.remove_outdated(image.name, image.files);
  run_.record.add(image);
  work_.forget(job);
  note_done(job);
  ++run_.tally.done;
}

void PredictPipeline::end_frame(const Job& job, const inference::ResultFiles* files) {
  JoinedFrames& joined = *job.joined;
  if (!(files == nullptr ? joined.leave_out() : joined.add(job.timepoint, *files))) return;
  inference::ResultFiles all = joined.files();
  if (joined.failed() == 0) {
    attempt(joined.image(), Phase::writing, [&] {
      all = joined.join();
      run_.record.remove_outdated(joined.name(), all);
      run_.record.add({joined.name(), joined.image(), joined.stamp(), all, "", 0});
    });
  } else if (!all.empty()) {
    log::warn("{}: {} of {} time points failed, so the others stay in a file each",
              joined.image(),
              joined.failed(),
              joined.frames());
  }
  const std::lock_guard lock(run_.tally.mutex);
  for (const auto& [kind, path] : all) run_.tally.results.add_item(kind, path);
}

}  // namespace cytra::pipelines
