// Part of pipelines/predict/pipeline.h: how results are written.
#include <chrono>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "data/sample/image_tensor.h"
#include "io/row_journal.h"
#include "pipelines/predict/pipeline.h"

namespace cytra::pipelines {

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
