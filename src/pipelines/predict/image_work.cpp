#include "pipelines/predict/image_work.h"

#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "data/loader/cache.h"
#include "data/sample/image_tensor.h"
#include "device/memory.h"
#include "inference/predictor/foreground.h"
#include "io/row_journal.h"
#include "pipelines/predict/uncertainty_table.h"
#include "tasks/annotation_targets.h"

namespace cytra::pipelines {

struct ImageWork::Job final : PredictJob {
  std::string rows_stamp;  // also of the windows that were chosen
  std::shared_ptr<const inference::ModelInput> input;
  tasks::ResultScores::Target truth;
  std::unique_ptr<inference::ImageResult> result;
  std::unique_ptr<io::RowJournal> journal;
  std::string journal_path(int64_t rank) const {
    return fmt::format("{}.{}{}.rows",
                       stem.substr(0, stem.rfind('/') + 1),
                       name(),
                       rank == 0 ? "" : fmt::format(".rank{}", rank));
  }
  static Job& of(PredictJob& job) { return static_cast<Job&>(job); }
};

namespace {

void expect_scored_form(const inference::WindowedModel& model) {
  const std::string usual = model.decoder->forms().front();
  const bool is_scored = model.decoder->steps(usual).empty() || !model.steps.empty();
  if (is_scored && !inference::Decoder::is_uncertainty(model.form)) return;
  throw ConfigError(
      "data.with_target: expected predict.save={}, which is scored, got {}", usual, model.form);
}

/// The figures that the record's images have under `form`. Throws: as DoneRecord::line().
std::vector<ImageUncertainty> uncertainties_of(DoneRecord& record, const std::string& form) {
  record.read();
  std::vector<ImageUncertainty> images;
  for (const auto& [name, known] : record.lines()) {
    const config::Node line = record.line(name, known.stamp, known.image);
    if (const config::Node* mean = line.find_direct(form))
      images.emplace_back(mean->as<double>(), known.image);
  }
  return images;
}

}  // namespace

ImageWork::ImageWork(inference::Predictor predictor,
                     std::string head,
                     const InputOptions& data,
                     const PredictOptions& options,
                     const config::Node& inference_args)
    : predictor_(std::move(predictor)),
      head_(std::move(head)),
      spacing_um_(data.spacing_um),
      format_(options.format),
      inference_args_(inference_args),
      result_{inference::result_steps(predictor_, options.postprocess),
              options.threshold,
              data.scores()},
      outputs_(options.outputs()) {
  if (const auto rule = inference::foreground_rule(options.skip_empty)) mask_ = rule->mask;
  const config::Node& task = model().config.at("task");
  if (tasks::has_class_names(task))
    class_name_ = [&task](int64_t number) { return tasks::class_name_of(task, number); };
  const bool uses_threshold = windowed().finish.kind == ops::Finish::Kind::threshold;
  if (!uses_threshold && options.threshold != PredictOptions().threshold) {
    log::warn("predict.threshold={}: no effect, it is for one mask's probability",
              options.threshold);
  }
  if (!data.scores()) return;
  expect_scored_form(windowed());
  scores_.emplace(task, model().out_channels);
}

std::string ImageWork::fingerprint() const {
  return fmt::format("{} {}{}",
                     model().fingerprint,
                     windowed().form,
                     mask_.empty() ? "" : " " + data::content_stamp(mask_));
}

std::vector<std::string> ImageWork::columns(bool with_target) const {
  std::vector<std::string> columns{source_key()};
  if (!with_target) return columns;
  columns.push_back(windowed().y_key);
  const config::Node* mask = model().config.find("task.mask_key");
  if (mask != nullptr && !mask->is_null()) columns.push_back(mask->as<std::string>());
  return columns;
}

PredictJobPointer ImageWork::new_job() const {
  return std::make_shared<Job>();
}

std::optional<inference::ResultFiles> ImageWork::done_before(const PredictJob& job) const {
  return scores_ ? std::nullopt : PredictWork::done_before(job);
}

int64_t ImageWork::read(PredictJob& of) {
  Job& job = Job::of(of);
  const std::string key = windowed().x_key;
  const int64_t by_rows_from = scores_ ? INT64_MAX : shares_rows() ? -1 : inference::by_rows_from();
  job.sample.folder = run().folder;
  auto input = std::make_shared<inference::ModelInput>(
      windowed().transforms.apply(job.sample, key, spacing_um_, by_rows_from));
  windowed().check(*input);
  if (scores_) job.truth = scores_->target_of(input->sample, windowed().y_key, key);
  int64_t bytes = input->is_by_rows() ? 0 : 8;
  for (const int64_t side : input->shape) bytes *= side;
  job.input = std::move(input);
  return bytes;
}

bool ImageWork::fits(const PredictJob& first, const PredictJob& next) const {
  const inference::ModelInput& a = *static_cast<const Job&>(first).input;
  const inference::ModelInput& b = *static_cast<const Job&>(next).input;
  return !a.is_by_rows() && !b.is_by_rows() && a.shape == b.shape;
}

inference::ImageResult::Outputs ImageWork::outputs_of(const PredictJob& job) const {
  inference::OutputPlace place;
  place.stem = job.stem;
  place.source = job.path;
  place.format = job.joined ? joined_format(format_, job.path).name : format_;
  place.class_name = class_name_;
  inference::ImageResult::Outputs outputs;
  for (const std::string& name : outputs_)
    outputs.push_back(inference::make_result_output(name, place));
  return outputs;
}

/// Logs the plan for the first image; for the others with -v.
void ImageWork::log_windows(const Job& job, const inference::SlidingWindowOptions& windows) {
  const std::vector<int64_t> size{job.input->shape.begin() + 1, job.input->shape.end()};
  log::write(std::exchange(told_, true) ? log::Level::debug : log::Level::info,
             fmt::format(
                 "{}: {}", job.id(), windowed().plan(size, windows, job.input->is_by_rows()).text));
}

inference::SlidingWindowOptions ImageWork::begin_result(Job& job) {
  if (!shares_rows() || run().processes.is_first()) {
    job.result =
        std::make_unique<inference::ImageResult>(predictor_, result_, job.input, outputs_of(job));
  }
  inference::SlidingWindowOptions windows =
      windowed().windows(*job.input, shares_rows() ? 0 : job.result->work_bytes());
  log_windows(job, windows);
  job.rows_stamp =
      fmt::format("{} {} {}", job.stamp, fmt::join(windows.roi_size, "x"), windows.sw_batch_size);
  return windows;
}

void ImageWork::compute(const std::vector<PredictJobPointer>& jobs,
                        Progress& progress,
                        const Send& send) {
  if (jobs.size() == 1) return compute_rows(jobs[0], progress, send);
  std::vector<const inference::ModelInput*> inputs;
  inference::SlidingWindowOptions windows;
  for (const PredictJobPointer& job : jobs) {
    inputs.push_back(Job::of(*job).input.get());
    windows = begin_result(Job::of(*job));
  }
  const std::string label = fmt::format("{} and {} more, windows", jobs[0]->id(), jobs.size() - 1);
  windowed().run(
      inputs,
      windows,
      [&](std::size_t i, const at::Tensor& values) {
        if (!values.defined()) return;  // the image by itself tells that they are not finite
        send(jobs[i], device::to_host(values), false);
        jobs[i]->is_computed = true;
      },
      [&](int64_t done, int64_t total) { progress.show_part(label, done, total); });
}

void ImageWork::compute_rows(const PredictJobPointer& pointer,
                             Progress& progress,
                             const Send& send) {
  Job& job = Job::of(*pointer);
  const inference::SlidingWindowOptions windows = begin_result(job);
  const std::string label = job.id() + ", windows";
  progress.show_part(label, 1, -1);  // begins: their rate and ETA count from here
  const inference::ModelInput& input = *job.input;
  const training::ProcessPlace& place = run().processes.place();
  const int64_t rows = input.shape[1];
  inference::RowRange range{0, rows};
  if (shares_rows()) {
    range = {rows * place.rank / place.size, rows * (place.rank + 1) / place.size};
    if (!input.is_by_rows()) range = {0, place.rank == 0 ? rows : 0};
  }
  if (input.is_by_rows()) {
    job.journal =
        std::make_unique<io::RowJournal>(job.journal_path(place.rank), job.rows_stamp, range.begin);
    if (!shares_rows()) {
      job.journal->replay([&](int64_t, const io::Image& kept) {
        send(pointer, data::to_tensor(kept, std::ssize(input.shape) - 1, job.path), true);
      });
    }
    const int64_t kept = job.journal->next() - range.begin;
    range.begin = job.journal->next();
    if (kept > 0) log::info("{}: {} of {} rows are there", job.id(), kept, rows);
  }
  if (range.begin >= range.end) return;
  windowed().run(
      input,
      windows,
      [&](int64_t, const std::vector<at::Tensor>& outputs) { send(pointer, outputs[0], false); },
      [&](int64_t done, int64_t total) { progress.show_part(label, done, total); },
      range);
}

void ImageWork::take(PredictJob& of, const at::Tensor& rows, bool is_kept) {
  Job& job = Job::of(of);
  if (job.journal && !is_kept) {
    job.journal->append(
        data::to_image(rows, inference::dtype_of(windowed().finish_of(*job.input)), {}),
        rows.size(1));
  }
  if (!shares_rows() || !job.journal) job.result->take(rows);
}

/// Joins the rows of an image that each process has computed; the first process writes them.
void ImageWork::join(PredictJob& of) {
  if (!shares_rows()) return;
  Job& job = Job::of(of);
  const at::Tensor failed =
      at::tensor({job.is_abandoned ? 1.0 : 0.0}, at::TensorOptions(at::kDouble));
  run().processes.sum({failed});
  const training::ProcessPlace& place = run().processes.place();
  if (failed.item<double>() > 0 || place.rank > 0) {
    job.is_abandoned = true;
    return;
  }
  if (!job.journal) return;
  const int64_t rows = job.input->shape[1];
  for (int64_t rank = 0; rank < place.size; ++rank) {
    io::RowJournal(job.journal_path(rank), job.rows_stamp, rows * rank / place.size)
        .replay([&](int64_t, const io::Image& kept) {
          job.result->take(data::to_tensor(kept, std::ssize(job.input->shape) - 1, job.path));
        });
  }
}

void ImageWork::write(PredictJob& job) {
  inference::ImageResult& result = *Job::of(job).result;
  result.finish();
  job.files = result.files();
  const std::string& form = windowed().form;
  if (inference::Decoder::is_uncertainty(form))
    job.more = fmt::format(R"({{"{}":{}}})", form, result.mean_uncertainty());
}

void ImageWork::book(PredictJob& of) {
  Job& job = Job::of(of);
  if (scores_) scores_->update(job.result->scored(), job.truth, job.input->sample.geometry());
  (job.result->is_without_objects() ? lacks_objects_ : has_objects_) = true;
  if (job.result->has_components() && !std::exchange(told_components_, true)) {
    log::info(
        "objects are the connected components of the mask, each with its class; to number them in "
        "the image, too: predict.postprocess=[{{_target_: ConnectedComponents}}]");
  }
}

void ImageWork::forget(PredictJob& of) {
  const Job& job = Job::of(of);
  for (int64_t rank = 0; job.journal && rank < (shares_rows() ? run().processes.place().size : 1);
       ++rank)
    ::unlink(job.journal_path(rank).c_str());
}

std::vector<at::Tensor> ImageWork::sums() {
  return scores_ ? scores_->sums() : std::vector<at::Tensor>();
}

/// The scores, and the name of the one that compares this run with others: the one that the
/// training watched.
void ImageWork::report(cli::Results& results) {
  if (!scores_) return;
  const std::map<std::string, double> scores = scores_->compute();
  const std::string end = head_.empty() ? "" : "/" + head_;
  for (const auto& [name, value] : scores) results.add(name + end, value);
  const config::Node& training = model().config;
  const auto watched = training.get<std::string>("callbacks.model_checkpoint.monitor", "");
  const std::string name = watched.substr(watched.find('/') + 1);  // "val/dice"
  if (scores.count(name) > 0) {
    results.add("monitor", name + end);
    results.add("mode", training.get<std::string>("callbacks.model_checkpoint.mode", "min"));
  }
  const std::string missing = scores_->what_is_missing();
  if (!missing.empty()) log::warn("{}", missing);
}

void ImageWork::finish(const std::vector<Done>& /*images*/, cli::Results& results) {
  if (lacks_objects_ && !has_objects_ && run().processes.is_alone())
    log::warn("there is no object in any of the images");
  const std::string& form = windowed().form;
  if (inference::Decoder::is_uncertainty(form)) {
    results.add_item(
        "uncertainty",
        write_uncertainty_table(uncertainties_of(run().record, form), run().folder, form));
  }
}

}  // namespace cytra::pipelines
