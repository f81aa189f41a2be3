// The end of PredictPipeline: from the rows of results to files, and to the books.
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <unistd.h>

#include "app/predict/pipeline.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/signals.h"
#include "data/image_tensor.h"
#include "io/row_journal.h"
#include "perf/scopes.h"

namespace cytra::app {

Queue<PredictPipeline::Rows>& PredictPipeline::rows_of(const Job& job) {
  return rows_[static_cast<std::size_t>(job.turn) % rows_.size()];
}

void PredictPipeline::fail_rows(const std::exception_ptr& error) {
  for (Queue<Rows>& rows : rows_) rows.fail(error);
}

void PredictPipeline::write_all(Queue<Rows>& of_thread) {
  while (std::optional<Rows> rows = of_thread.pop()) {
    Job& job = *rows->job;
    const bool is_last = !rows->values.defined();
    const perf::Scope scope("write");
    const pipelines::StageWork work(stages_.write, is_last ? 1 : 0, true);
    if (is_last) {
      if (shares_rows_) join_rows(job);
      finish(rows->job);
    } else if (!job.is_abandoned && !attempt(job.id(), Part::writing, [&] {
                 if (job.journal && !rows->is_kept) {
                   job.journal->append(
                       data::to_image(rows->values, inference::dtype_of(predictor_.finish()), {}),
                       rows->values.size(1));
                 }
                 if (!shares_rows_ || !job.journal) job.files->take(rows->values);
               })) {
      job.is_abandoned = true;
    }
  }
}

void PredictPipeline::finish(const JobPointer& job) {
  // A signal ends the program once what is being finished is booked: nothing more is begun then.
  while (signal_received() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ++books_.finishing;
  if (!job->is_abandoned && !attempt(job->id(), Part::writing, [&] { job->files->finish(); }))
    job->is_abandoned = true;
  const std::lock_guard lock(turns_);
  finished_[job->turn] = job;
  for (auto next = finished_.begin(); next != finished_.end() && next->first == turn_; ++turn_) {
    Job& own = *next->second;
    if (!own.is_abandoned && !attempt(own.id(), Part::writing, [&] { book(own); }))
      own.is_abandoned = true;
    if (own.lapse) end_frame(own, own.is_abandoned ? nullptr : &own.files->files());
    own.files.reset();
    --books_.finishing;
    next = finished_.erase(next);
  }
}

/// The rows of an image that each process has computed, for the first one to write.
void PredictPipeline::join_rows(Job& job) {
  const at::Tensor failed =
      at::tensor({job.is_abandoned ? 1.0 : 0.0}, at::TensorOptions(at::kDouble));
  processes_.sum({failed});
  const training::Place& place = processes_.place();
  if (failed.item<double>() > 0 || place.rank > 0) {
    job.is_abandoned = true;
    return;
  }
  if (!job.journal) return;
  const int64_t rows = job.input->shape[1];
  for (int64_t rank = 0; rank < place.size; ++rank) {
    io::RowJournal(job.journal_path(rank), job.rows_stamp, rows * rank / place.size)
        .replay([&](int64_t, const io::Image& kept) {
          job.files->take(
              data::to_tensor(kept, static_cast<int64_t>(job.input->shape.size()) - 1, job.path));
        });
  }
}

void PredictPipeline::book(Job& job) {
  const std::lock_guard lock(books_.mutex);
  if (scores_ != nullptr)
    scores_->update(job.files->scored(), job.truth, job.input->sample.geometry());
  if (!job.lapse)
    for (const auto& [kind, path] : job.files->files()) books_.results.add(kind, path);
  for (const auto& [kind, path] : record_.outdated(job.name(), job.files->files())) {
    std::error_code ignored;
    if (may_replace(path)) std::filesystem::remove_all(path, ignored);
  }
  record_.add(job.name(), job.id(), job.stamp, job.files->files());
  for (int64_t rank = 0; job.journal && rank < (shares_rows_ ? processes_.place().size : 1); ++rank)
    ::unlink(job.journal_path(rank).c_str());
  ++books_.done;
  if (job.files->has_components() && !std::exchange(told_components_, true)) {
    log::info(
        "objects are the connected components of the mask, each with its class; to number them in "
        "the image, too: predict.postprocess=[{{_target_: ConnectedComponents}}]");
  }
}

}  // namespace cytra::app
