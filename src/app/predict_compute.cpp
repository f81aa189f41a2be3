// The middle of PredictPipeline: from images to the rows of their results.
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/predict_pipeline.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "data/image_tensor.h"
#include "perf/device_memory.h"
#include "perf/scopes.h"

namespace cytra::app {
namespace {

/// Ends the computing of an image whose results can't be written; the writer told why.
struct Abandoned {};

}  // namespace

void PredictPipeline::compute_all(Progress& progress) {
  const auto batch_size = static_cast<std::size_t>(config_.data.batch_size);
  int64_t done = 0;
  std::vector<JobPointer> batch;
  const auto flush = [&] {
    const pipelines::StageWork work(stages_.predict, static_cast<int64_t>(batch.size()), true);
    if (batch.size() == 1) compute(batch[0], progress);
    if (batch.size() > 1) compute_together(batch, progress);
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

inference::SlidingWindowOptions PredictPipeline::begin(Job& job) {
  const inference::ModelInput& input = *job.input;
  inference::SlidingWindowOptions windows =
      predictor_.windows(job.id(), {input.shape.begin() + 1, input.shape.end()});
  tell(job, windows);
  job.rows_stamp =
      fmt::format("{} {} {}", job.stamp, fmt::join(windows.roi_size, "x"), windows.sw_batch_size);
  if (!shares_rows_ || processes_.is_first())
    // Of a lapse that becomes one file, the format is one that has time points.
    job.files = std::make_unique<PredictionFiles>(
        common_, job.input, job.stem, job.lapse && !ends_with(job.path, ".zarr") ? "" : job.path);
  return windows;
}

void PredictPipeline::send(const JobPointer& job, const at::Tensor& values, bool is_kept) {
  if (job->is_abandoned) throw Abandoned();
  const pipelines::StagePause pause(stages_.predict);  // while the writer has no room
  rows_of(*job).push({job, values, is_kept}, static_cast<int64_t>(values.nbytes()));
}

void PredictPipeline::compute_rows(const JobPointer& job,
                                   const inference::SlidingWindowOptions& windows,
                                   const inference::WindowProgress& progress) {
  const inference::ModelInput& input = *job->input;
  const training::Place& place = processes_.place();
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
  predictor_.run(
      input,
      windows,
      [&](int64_t, const std::vector<at::Tensor>& outputs) { send(job, outputs[0]); },
      progress,
      range);
}

void PredictPipeline::compute(const JobPointer& job, Progress& progress) {
  bool is_computed = false;
  try {
    is_computed = attempt(job->id(), Part::computing, [&] {
      const perf::Scope scope("predict");
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
  const pipelines::StagePause pause(stages_.predict);
  rows_of(*job).push({job, {}, false});
}

/// Images of one size.
void PredictPipeline::compute_together(const std::vector<JobPointer>& jobs, Progress& progress) {
  std::vector<const inference::ModelInput*> inputs;
  for (const JobPointer& job : jobs) inputs.push_back(job->input.get());
  std::vector<bool> are_computed(jobs.size());
  const std::string label = fmt::format("{} and {} more, windows", jobs[0]->id(), jobs.size() - 1);
  const auto compute_all_at_once = [&] {
    const perf::Scope scope("predict");
    inference::SlidingWindowOptions windows;
    for (const JobPointer& job : jobs) windows = begin(*job);
    predictor_.run(
        inputs,
        windows,
        [&](std::size_t i, const at::Tensor& values) {
          are_computed[i] = attempt(jobs[i]->id(), Part::computing, [&] {
            if (!values.defined()) {
              throw DataError(jobs[i]->id() +
                              ": the model makes values of it that are NaN or infinite");
            }
            send(jobs[i], perf::to_host(values));
          });
        },
        [&](int64_t done, int64_t total) { progress.show_part(label, done, total); });
  };
  try {
    guarded([&] {
      compute_all_at_once();
      return 0;
    });
  } catch (const std::exception& error) {  // of one of them, or all: each by itself tells
    if (dynamic_cast<const IoError*>(&error) != nullptr) throw;
    log::debug("{}: {}; each by itself", label, error.what());
    for (const JobPointer& job : jobs) {
      job->is_abandoned = false;
      compute(job, progress);
    }
    return;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!are_computed[i]) jobs[i]->is_abandoned = true;
    const pipelines::StagePause pause(stages_.predict);
    rows_of(*jobs[i]).push({jobs[i], {}, false});
  }
}

/// Of the first image; of the others with -v.
void PredictPipeline::tell(const Job& job, const inference::SlidingWindowOptions& windows) {
  const inference::ModelInput& input = *job.input;
  const std::vector<int64_t> size{input.shape.begin() + 1, input.shape.end()};
  log::write(
      std::exchange(told_, true) ? log::Level::debug : log::Level::info,
      fmt::format("{}: {}", job.id(), predictor_.plan(size, windows, input.is_by_rows()).text));
}

}  // namespace cytra::app
