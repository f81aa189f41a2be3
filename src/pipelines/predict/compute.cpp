// Part of pipelines/predict/pipeline.h: how images are predicted.
#include <exception>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "data/sample/image_tensor.h"
#include "device/error.h"
#include "device/memory.h"
#include "io/row_journal.h"
#include "pipelines/predict/pipeline.h"

namespace cytra::pipelines {
namespace {

/// Ends the computing of an image whose results can't be written; the writer has reported why.
struct Abandoned {};

}  // namespace

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
    if (run_.profile != nullptr) run_.profile->end_step();
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

}  // namespace cytra::pipelines
