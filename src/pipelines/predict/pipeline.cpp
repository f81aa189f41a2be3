// One class for three stages that wait for each other: reading, computing, writing.
#include "pipelines/predict/pipeline.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "base/signals.h"
#include "data/image_tensor.h"
#include "device/error.h"
#include "device/memory.h"
#include "io/row_journal.h"
#include "pipelines/job/stage_threads.h"
#include "pipelines/job/stamp.h"
#include "tasks/annotation_targets.h"

namespace cytra::pipelines {
namespace {

constexpr std::size_t kReadAhead = 2;   // images
constexpr std::size_t kRowsAhead = 16;  // parts of images that wait to be written

int64_t quarter_of_memory() {
  return available_memory().bytes / 4;
}

/// Ends the computing of an image whose results can't be written; the writer has reported why.
struct Abandoned {};

}  // namespace

int64_t writer_threads() {
  constexpr int64_t kMost = 4;
  return std::clamp<int64_t>(at::get_num_threads(), 1, kMost);
}

PredictPipeline::PredictPipeline(PredictRun run,
                                 const inference::Predictor& predictor,
                                 DoneRecord& record,
                                 tasks::ResultScores* scores)
    : run_(std::move(run)),
      predictor_(predictor),
      record_(record),
      scores_(scores),
      result_{inference::result_steps(predictor, run_.options.postprocess),
              run_.options.threshold,
              inference::keeps_file_grid(predictor.model(), run_.options.original_grid),
              scores != nullptr},
      outputs_(run_.options.outputs()),
      ready_(kReadAhead, quarter_of_memory()) {
  const config::Node& task = predictor.model().config.at("task");
  if (tasks::has_class_names(task))
    class_name_ = [&task](int64_t number) { return tasks::class_name_of(task, number); };
}

void PredictPipeline::run(const std::vector<data::Sample>& inputs, Progress& progress) {
  shares_rows_ = static_cast<int64_t>(inputs.size()) < run_.processes.place().size;
  // Processes that share the rows of an image join them in the images' order.
  const int64_t count = shares_rows_ ? 1 : writer_threads();
  for (int64_t i = 0; i < count; ++i) rows_.emplace_back(kRowsAhead, quarter_of_memory() / count);
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
  if (lacks_objects_ && !has_objects_ && run_.processes.is_alone())
    log::warn("there is no object in any of the images");
}

bool PredictPipeline::attempt(const std::string& id,
                              Phase phase,
                              const std::function<void()>& work) {
  const int code = run_.tally.attempt(id, phase, run_.data.on_error == "fail", work);
  if (code != 0) record_.add_failed(id, code);
  return code == 0;
}

void PredictPipeline::read_all(const std::vector<data::Sample>& inputs) {
  const std::string key = source_key(predictor_);
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
    std::string content;  // of all scenes and frames
    if (!attempt(inputs[i].id, Phase::reading, [&] {
          scenes = scenes_of(inputs[i], predictor_);
          content = content_of(inputs[i], predictor_.windowed().y_key);
        }))
      continue;
    const auto count = [&](std::size_t parts) {
      const std::lock_guard lock(run_.tally.mutex);
      run_.tally.images += static_cast<int64_t>(parts) - 1;
    };
    count(scenes.size());
    for (const data::Sample& scene : scenes) {
      const std::string stem =
          scenes.size() == 1 ? stems[i] : names_.scene(stems[i], source_of(scene).selection.scene);
      Frames frames;
      if (!attempt(scene.id, Phase::reading, [&] { frames = frames_of(scene, predictor_); }))
        continue;
      count(frames.size());
      if (!read_frames(scene, frames, stem, content)) return;
    }
  }
}

bool PredictPipeline::read_frames(const data::Sample& input,
                                  const Frames& frames,
                                  const std::string& stem,
                                  const std::string& content) {
  std::shared_ptr<PredictLapse> lapse;
  if (frames.size() > 1) {
    if (!attempt(input.id, Phase::reading, [&] {
          lapse = lapse_of(input, frames.size(), stem, content);
        }))
      return true;
    if (lapse && is_done(*lapse)) return true;
    if (shares_rows_ && !run_.processes.is_first()) lapse.reset();
  }
  for (std::size_t t = 0; t < frames.size(); ++t) {
    const auto job = std::make_shared<Job>();
    job->sample = frames[t];
    job->content = content;
    job->timepoint = static_cast<int64_t>(t);
    job->stem =
        run_.folder + "/" + (frames.size() == 1 ? stem : names_.frame(stem, job->timepoint));
    job->lapse = lapse;
    if (!read(job)) return false;
  }
  return true;
}

std::shared_ptr<PredictLapse> PredictPipeline::lapse_of(const data::Sample& input,
                                                        std::size_t frames,
                                                        const std::string& stem,
                                                        const std::string& content) {
  const auto source = input.sources.find(source_key(predictor_));
  if (source == input.sources.end()) return nullptr;
  if (run_.options.frames == "apart") {
    record_.remove_outdated(stem, {});  // of a run that joined them
    return nullptr;
  }
  expect_replaceable(run_.folder + "/" + stem +
                     lapse_format(run_.options.format, source->second.path).output_ending);
  return std::make_shared<PredictLapse>(
      input.id,
      run_.folder + "/" + stem,
      stamp_of(input, content, run_.settings + " together", predictor_.windowed().y_key),
      static_cast<int64_t>(frames));
}

bool PredictPipeline::is_done(const PredictLapse& lapse) {
  if (!run_.options.resume || scores_ != nullptr) return false;
  const auto files = record_.find(lapse.name(), lapse.stamp());
  if (!files) return false;
  if (shares_rows_ && !run_.processes.is_first()) return true;
  const std::lock_guard lock(run_.tally.mutex);
  for (const auto& [kind, path] : *files) run_.tally.results.add_item(kind, path);
  if (!run_.processes.is_first())  // who tells
    record_.add({lapse.name(), lapse.image(), lapse.stamp(), *files, "", lapse.frames()});
  run_.tally.done += lapse.frames();
  run_.tally.resumed += lapse.frames();
  return true;
}

void PredictPipeline::end_frame(const Job& job, const inference::ResultFiles* files) {
  PredictLapse& lapse = *job.lapse;
  if (!(files == nullptr ? lapse.leave_out() : lapse.add(job.timepoint, *files))) return;
  inference::ResultFiles all = lapse.files();
  if (lapse.failed() == 0) {
    attempt(lapse.image(), Phase::writing, [&] {
      all = lapse.join();
      record_.remove_outdated(lapse.name(), all);
      record_.add({lapse.name(), lapse.image(), lapse.stamp(), all, "", 0});
    });
  } else if (!all.empty()) {
    log::warn("{}: {} of {} time points failed, so the others stay in a file each",
              lapse.image(),
              lapse.failed(),
              lapse.frames());
  }
  const std::lock_guard lock(run_.tally.mutex);
  for (const auto& [kind, path] : all) run_.tally.results.add_item(kind, path);
}

bool PredictPipeline::read(const JobPointer& job) {
  const data::Sample& frame = job->sample;
  const std::string key = predictor_.windowed().x_key;
  std::optional<inference::ResultFiles> earlier;
  if (!attempt(frame.id, Phase::reading, [&] {
        const auto source = frame.sources.find(source_key(predictor_));
        if (source != frame.sources.end()) job->path = source->second.path;  // else made of others
        job->stamp = stamp_of(frame, job->content, run_.settings, predictor_.windowed().y_key);
        if ((earlier = done_before(*job))) return;
        const StageWork work(run_.stages.read);
        auto input = std::make_shared<inference::ModelInput>(
            predictor_.windowed().transforms.apply(frame,
                                                   key,
                                                   run_.data.spacing_um,
                                                   scores_ != nullptr ? INT64_MAX
                                                   : shares_rows_     ? -1
                                                                      : inference::by_rows_from()));
        predictor_.windowed().check(*input);
        if (scores_ != nullptr)
          job->truth = scores_->target_of(input->sample, predictor_.windowed().y_key, key);
        job->input = std::move(input);
      })) {
    if (job->lapse) end_frame(*job, nullptr);
    return true;
  }
  if (earlier && job->lapse) end_frame(*job, &*earlier);
  if (!job->input) return true;
  int64_t bytes = job->input->is_by_rows() ? 0 : 8;
  for (const int64_t side : job->input->shape) bytes *= side;
  return ready_.push(job, bytes);
}

std::optional<inference::ResultFiles> PredictPipeline::done_before(const Job& job) {
  if (!run_.options.resume || scores_ != nullptr) return std::nullopt;
  const auto files = record_.find(job.name(), job.stamp);
  if (!files) return std::nullopt;
  const std::lock_guard lock(run_.tally.mutex);
  if (!job.lapse)
    for (const auto& [kind, path] : *files) run_.tally.results.add_item(kind, path);
  if (!run_.processes.is_first())
    record_.add({job.name(), job.id(), job.stamp, *files});  // who tells
  ++run_.tally.done;
  ++run_.tally.resumed;
  return files;
}

void PredictPipeline::compute_all(Progress& progress) {
  // A budget of memory is planned for one image.
  const auto batch_size =
      static_cast<std::size_t>(run_.options.max_memory_mb ? 1 : run_.data.batch_size);
  int64_t done = 0;
  std::vector<JobPointer> batch;
  const auto flush = [&] {
    {
      const StageWork work(run_.stages.predict, static_cast<int64_t>(batch.size()));
      if (batch.size() == 1) compute(batch[0], progress);
      if (batch.size() > 1) compute_together(batch, progress);
    }
    if (run_.profile != nullptr) run_.profile->end_batch();
    done += static_cast<int64_t>(batch.size());
    batch.clear();
    progress.update(done);
  };
  int64_t turn = 0;
  while (std::optional<JobPointer> job = ready_.pop()) {
    (*job)->turn = turn++;
    const inference::ModelInput& input = *(*job)->input;
    const bool fits =
        !batch.empty() && !input.is_by_rows() && input.shape == batch[0]->input->shape;
    if (!batch.empty() && !fits) flush();
    batch.push_back(std::move(*job));
    if (input.is_by_rows() || batch.size() == batch_size) flush();
  }
  if (!batch.empty()) flush();
}

inference::ImageResult::Outputs PredictPipeline::outputs_of(const Job& job) const {
  inference::OutputPlace place;
  place.stem = job.stem;
  place.source = job.path;
  const std::string& format = run_.options.format;
  place.format = job.lapse ? lapse_format(format, job.path).name : format;
  place.class_name = class_name_;
  inference::ImageResult::Outputs outputs;
  for (const std::string& name : outputs_)
    outputs.push_back(inference::make_result_output(name, place));
  return outputs;
}

inference::SlidingWindowOptions PredictPipeline::begin(Job& job) {
  const inference::ModelInput& input = *job.input;
  inference::SlidingWindowOptions windows = predictor_.windowed().windows(input);
  log_windows(job, windows);
  job.rows_stamp =
      fmt::format("{} {} {}", job.stamp, fmt::join(windows.roi_size, "x"), windows.sw_batch_size);
  if (!shares_rows_ || run_.processes.is_first()) {
    job.result =
        std::make_unique<inference::ImageResult>(predictor_, result_, job.input, outputs_of(job));
  }
  return windows;
}

void PredictPipeline::send(const JobPointer& job, const at::Tensor& values, bool is_kept) {
  if (job->is_abandoned) throw Abandoned();
  const StagePause pause(run_.stages.predict);  // while the writer has no room
  rows_of(*job).push({job, values, is_kept}, static_cast<int64_t>(values.nbytes()));
}

void PredictPipeline::compute_rows(const JobPointer& job,
                                   const inference::SlidingWindowOptions& windows,
                                   const inference::WindowProgress& progress) {
  const inference::ModelInput& input = *job->input;
  const training::ProcessPlace& place = run_.processes.place();
  const int64_t rows = input.shape[1];
  inference::RowRange range{0, rows};
  if (shares_rows_) {
    range = {rows * place.rank / place.size, rows * (place.rank + 1) / place.size};
    if (!input.is_by_rows()) range = {0, place.rank == 0 ? rows : 0};
  }
  if (input.is_by_rows()) {
    job->journal = std::make_unique<io::RowJournal>(
        job->journal_path(place.rank), job->rows_stamp, range.begin);
    if (!shares_rows_) {
      job->journal->replay([&](int64_t, const io::Image& kept) {
        send(job,
             data::to_tensor(kept, static_cast<int64_t>(input.shape.size()) - 1, job->path),
             true);
      });
    }
    const int64_t kept = job->journal->next() - range.begin;
    range.begin = job->journal->next();
    if (kept > 0) log::info("{}: {} of {} rows are there", job->id(), kept, rows);
  }
  if (range.begin >= range.end) return;
  predictor_.windowed().run(
      input,
      windows,
      [&](int64_t, const std::vector<at::Tensor>& outputs) { send(job, outputs[0]); },
      progress,
      range);
}

void PredictPipeline::compute(const JobPointer& job, Progress& progress) {
  bool is_computed = false;
  try {
    is_computed = attempt(job->id(), Phase::computing, [&] {
      const inference::SlidingWindowOptions windows = begin(*job);
      const std::string label = job->id() + ", windows";
      progress.show_part(label, 1, -1);  // begins: their rate and ETA count from here
      compute_rows(job, windows, [&](int64_t done, int64_t total) {
        progress.show_part(label, done, total);
      });
    });
  } catch (const Abandoned&) {
  }
  if (!is_computed) job->is_abandoned = true;
  const StagePause pause(run_.stages.predict);
  rows_of(*job).push({job, {}, false});
}

/// Images of one size.
void PredictPipeline::compute_together(const std::vector<JobPointer>& jobs, Progress& progress) {
  std::vector<const inference::ModelInput*> inputs;
  for (const JobPointer& job : jobs) inputs.push_back(job->input.get());
  enum class End { none, sent, left_out };
  std::vector<End> ends(jobs.size(), End::none);
  const std::string label = fmt::format("{} and {} more, windows", jobs[0]->id(), jobs.size() - 1);
  const auto compute_all_at_once = [&] {
    inference::SlidingWindowOptions windows;
    for (const JobPointer& job : jobs) windows = begin(*job);
    predictor_.windowed().run(
        inputs,
        windows,
        [&](std::size_t i, const at::Tensor& values) {
          const bool is_sent = attempt(jobs[i]->id(), Phase::computing, [&] {
            if (!values.defined()) {
              throw DataError(jobs[i]->id() +
                              ": the model makes values of it that are NaN or infinite");
            }
            send(jobs[i], device::to_host(values));
          });
          ends[i] = is_sent ? End::sent : End::left_out;
        },
        [&](int64_t done, int64_t total) { progress.show_part(label, done, total); });
  };
  try {
    device::guarded(compute_all_at_once);
  } catch (const std::exception& error) {  // of one of them, or all: each by itself tells
    if (dynamic_cast<const IoError*>(&error) != nullptr) throw;
    log::debug("{}: {}; each is predicted by itself", label, error.what());
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (ends[i] == End::none) {
      compute(jobs[i], progress);
      continue;
    }
    if (ends[i] == End::left_out) jobs[i]->is_abandoned = true;
    const StagePause pause(run_.stages.predict);
    rows_of(*jobs[i]).push({jobs[i], {}, false});
  }
}

/// Logs the plan for the first image; for the others with -v.
void PredictPipeline::log_windows(const Job& job, const inference::SlidingWindowOptions& windows) {
  const inference::ModelInput& input = *job.input;
  const std::vector<int64_t> size{input.shape.begin() + 1, input.shape.end()};
  log::write(
      std::exchange(told_, true) ? log::Level::debug : log::Level::info,
      fmt::format(
          "{}: {}", job.id(), predictor_.windowed().plan(size, windows, input.is_by_rows()).text));
}

Queue<PredictPipeline::Rows>& PredictPipeline::rows_of(const Job& job) {
  return rows_[static_cast<std::size_t>(job.turn) % rows_.size()];
}

void PredictPipeline::write_all(Queue<Rows>& of_thread) {
  while (std::optional<Rows> rows = of_thread.pop()) {
    Job& job = *rows->job;
    const bool is_last = !rows->values.defined();
    const StageWork work(run_.stages.write, is_last ? 1 : 0);
    if (is_last) {
      if (shares_rows_) join_rows(job);
      finish(rows->job);
    } else if (!job.is_abandoned && !attempt(job.id(), Phase::writing, [&] {
                 if (job.journal && !rows->is_kept) {
                   job.journal->append(
                       data::to_image(
                           rows->values, inference::dtype_of(predictor_.windowed().finish), {}),
                       rows->values.size(1));
                 }
                 if (!shares_rows_ || !job.journal) job.result->take(rows->values);
               })) {
      job.is_abandoned = true;
    }
  }
}

void PredictPipeline::finish(const JobPointer& job) {
  // A signal ends the program after the work in progress is recorded; nothing new is begun then.
  while (signal_received() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ++run_.tally.finishing;
  if (!job->is_abandoned && !attempt(job->id(), Phase::writing, [&] { job->result->finish(); }))
    job->is_abandoned = true;
  const std::lock_guard lock(turns_);
  finished_[job->turn] = job;
  for (auto next = finished_.begin(); next != finished_.end() && next->first == turn_; ++turn_) {
    Job& own = *next->second;
    if (!own.is_abandoned && !attempt(own.id(), Phase::writing, [&] { book(own); }))
      own.is_abandoned = true;
    if (own.lapse) end_frame(own, own.is_abandoned ? nullptr : &own.result->files());
    own.result.reset();
    --run_.tally.finishing;
    next = finished_.erase(next);
  }
}

/// Joins the rows of an image that each process has computed; the first process writes them.
void PredictPipeline::join_rows(Job& job) {
  const at::Tensor failed =
      at::tensor({job.is_abandoned ? 1.0 : 0.0}, at::TensorOptions(at::kDouble));
  run_.processes.sum({failed});
  const training::ProcessPlace& place = run_.processes.place();
  if (failed.item<double>() > 0 || place.rank > 0) {
    job.is_abandoned = true;
    return;
  }
  if (!job.journal) return;
  const int64_t rows = job.input->shape[1];
  for (int64_t rank = 0; rank < place.size; ++rank) {
    io::RowJournal(job.journal_path(rank), job.rows_stamp, rows * rank / place.size)
        .replay([&](int64_t, const io::Image& kept) {
          job.result->take(
              data::to_tensor(kept, static_cast<int64_t>(job.input->shape.size()) - 1, job.path));
        });
  }
}

void PredictPipeline::book(Job& job) {
  const std::lock_guard lock(run_.tally.mutex);
  if (scores_ != nullptr)
    scores_->update(job.result->scored(), job.truth, job.input->sample.geometry());
  if (!job.lapse)
    for (const auto& [kind, path] : job.result->files()) run_.tally.results.add_item(kind, path);
  record_.remove_outdated(job.name(), job.result->files());
  const std::string& form = predictor_.windowed().form;
  const std::string more = inference::Decoder::is_uncertainty(form)
                               ? fmt::format(R"({{"{}":{}}})", form, job.result->mean_uncertainty())
                               : "";
  record_.add({job.name(), job.id(), job.stamp, job.result->files(), more});
  for (int64_t rank = 0; job.journal && rank < (shares_rows_ ? run_.processes.place().size : 1);
       ++rank)
    ::unlink(job.journal_path(rank).c_str());
  ++run_.tally.done;
  (job.result->is_without_objects() ? lacks_objects_ : has_objects_) = true;
  if (job.result->has_components() && !std::exchange(told_components_, true)) {
    log::info(
        "objects are the connected components of the mask, each with its class; to number them in "
        "the image, too: predict.postprocess=[{{_target_: ConnectedComponents}}]");
  }
}

}  // namespace cytra::pipelines
