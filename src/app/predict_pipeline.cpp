#include "app/predict_pipeline.h"

#include <exception>
#include <filesystem>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "data/image_tensor.h"
#include "io/row_journal.h"
#include "ops/window_sums.h"
#include "perf/scopes.h"

namespace cytra::app {
namespace {

constexpr std::size_t kReadAhead = 2;   // images
constexpr std::size_t kRowsAhead = 16;  // parts of images that wait to be written

int64_t quarter_of_memory() {
  return available_memory().bytes / 4;
}

std::string settings_of(const PredictConfig& config, const inference::Predictor& predictor) {
  const config::Node& trained = predictor.model().config;
  const auto& engine = config.performance.engine;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     predictor.model().fingerprint,
                     config::to_json(trained.at("data.transforms")),
                     config::to_json(config.inference_args),
                     predictor.form(),
                     config.predict.threshold,
                     config.predict.format,
                     config.predict.overlay,
                     config::to_json(trained.at("task")),
                     config::to_json(config.predict.postprocess),
                     engine.backend,
                     engine.quantization,
                     config.trainer.precision.value_or("32"),
                     config.data.axes.value_or(""),
                     fmt::join(config.data.spacing_um, ","),
                     fmt::join(config.tta.mirror_axes, ","),
                     config.tta.rotate90,
                     fmt::join(config.tta.scales, ","),
                     config.tta.average,
                     config.predict.original_grid,
                     config.predict.measurements,
                     config.predict.contours,
                     config.model.engine.compile_model);
}

/// The decoder's own steps, the task's, then those of `predict`.
inference::PostprocessSteps steps_of(const PredictConfig& config,
                                     const inference::Predictor& predictor) {
  inference::PostprocessSteps steps = predictor.steps();
  const auto add = [&](const config::Node& list) {
    for (auto& step : inference::make_postprocess(list)) steps.push_back(step);
  };
  if (const config::Node* own = predictor.model().config.find("task.postprocess")) add(*own);
  add(config.predict.postprocess);
  return steps;
}

}  // namespace

PredictPipeline::PredictPipeline(const PredictConfig& config,
                                 const inference::Predictor& predictor,
                                 std::string folder,
                                 Books& books,
                                 PredictRecord& record,
                                 tasks::ResultScores* scores,
                                 training::Processes& processes,
                                 PredictStages& stages)
    : config_(config),
      predictor_(predictor),
      folder_(std::move(folder)),
      books_(books),
      record_(record),
      scores_(scores),
      processes_(processes),
      stages_(stages),
      common_{predictor, config.predict, steps_of(config, predictor), scores != nullptr},
      settings_(settings_of(config, predictor)),
      ready_(kReadAhead, quarter_of_memory()),
      rows_(kRowsAhead, quarter_of_memory()) {}

void PredictPipeline::run(const std::vector<data::Sample>& inputs, Progress& progress) {
  shares_rows_ = static_cast<int64_t>(inputs.size()) < processes_.place().size;
  std::exception_ptr error;
  std::thread reader([&] {
    const c10::InferenceMode inference_mode;
    try {
      read_all(inputs);
      ready_.close();
    } catch (...) {
      ready_.fail(std::current_exception());
    }
  });
  std::thread writer([&] {
    const c10::InferenceMode inference_mode;
    try {
      write_all();
    } catch (...) {
      error = std::current_exception();
      rows_.fail(error);
    }
  });
  std::exception_ptr own;
  try {
    const c10::InferenceMode inference_mode;
    compute_all(progress);
    rows_.close();
  } catch (...) {
    own = std::current_exception();
    rows_.fail(own);
  }
  ready_.close();
  reader.join();
  writer.join();
  if (own) std::rethrow_exception(own);
  if (error) std::rethrow_exception(error);
}

bool PredictPipeline::attempt(const std::string& id, Part part, const std::function<void()>& work) {
  try {
    guarded([&] {
      work();
      return 0;
    });
    return true;
  } catch (const std::exception& error) {
    const bool is_io = dynamic_cast<const IoError*>(&error) != nullptr;
    const bool is_config = dynamic_cast<const ConfigError*>(&error) != nullptr;
    const bool is_of_all = is_config && (part == Part::writing || books_.done == 0);
    if (config_.data.on_error == "fail" || (part != Part::reading && is_io) || is_of_all) throw;
    books_.leave_out(id, error);
    record_.add_failed(id, exit_code(error));
    return false;
  }
}

void PredictPipeline::read_all(const std::vector<data::Sample>& inputs) {
  const std::string key = source_key(predictor_);
  const auto source_of = [&](const data::Sample& sample) {
    const auto source = sample.sources.find(key);
    return source == sample.sources.end() ? data::Source() : source->second;
  };
  std::vector<std::string> stems;
  for (const data::Sample& input : inputs) stems.push_back(names_.next(source_of(input)));
  const training::Place& place = processes_.place();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!shares_rows_ && static_cast<int64_t>(i) % place.size != place.rank) continue;
    std::vector<data::Sample> scenes;
    std::string content;  // of all scenes and frames
    if (!attempt(inputs[i].id, Part::reading, [&] {
          scenes = scenes_of(inputs[i], predictor_);
          if (inputs[i].sources.count(key) > 0) content = content_of(inputs[i].sources.at(key));
        }))
      continue;
    const auto count = [&](std::size_t parts) {
      const std::lock_guard lock(books_.mutex);
      books_.images += static_cast<int64_t>(parts) - 1;
    };
    count(scenes.size());
    for (const data::Sample& scene : scenes) {
      const std::string stem =
          scenes.size() == 1 ? stems[i] : names_.scene(stems[i], source_of(scene).selection.scene);
      Frames frames;
      if (!attempt(scene.id, Part::reading, [&] { frames = frames_of(scene, predictor_); }))
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
    if (!attempt(input.id, Part::reading, [&] {
          lapse = lapse_of(input, frames.size(), stem, content);
        }))
      return true;
    if (lapse && is_done(*lapse)) return true;
    if (shares_rows_ && !processes_.is_first()) lapse.reset();
  }
  for (std::size_t t = 0; t < frames.size(); ++t) {
    const auto job = std::make_shared<Job>();
    job->sample = frames[t];
    job->content = content;
    job->timepoint = static_cast<int64_t>(t);
    job->stem = folder_ + "/" + (frames.size() == 1 ? stem : names_.frame(stem, job->timepoint));
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
  if (config_.predict.frames == "apart") {  // after a run that joined them
    for (const auto& [kind, path] : record_.outdated(stem, {})) {
      std::error_code ignored;
      if (may_replace(path)) std::filesystem::remove_all(path, ignored);
    }
    return nullptr;
  }
  const std::string& format = config_.predict.format;
  const bool is_zarr =
      format == "ome_zarr" || (format == "auto" && ends_with(source->second.path, ".zarr"));
  expect_replaceable(folder_ + "/" + stem + (is_zarr ? ".ome.zarr" : ".ome.tif"));
  return std::make_shared<PredictLapse>(input.id,
                                        folder_ + "/" + stem,
                                        stamp_of(source->second, content, settings_ + " together"),
                                        static_cast<int64_t>(frames));
}

bool PredictPipeline::is_done(const PredictLapse& lapse) {
  if (!config_.predict.resume || scores_ != nullptr) return false;
  const auto files = record_.find(lapse.name(), lapse.stamp());
  if (!files) return false;
  if (shares_rows_ && !processes_.is_first()) return true;
  const std::lock_guard lock(books_.mutex);
  for (const auto& [kind, path] : *files) books_.results.add(kind, path);
  if (!processes_.is_first())  // who tells
    record_.add(lapse.name(), lapse.image(), lapse.stamp(), *files, lapse.frames());
  books_.done += lapse.frames();
  books_.resumed += lapse.frames();
  return true;
}

void PredictPipeline::end_frame(const Job& job, const PredictedFiles* files) {
  PredictLapse& lapse = *job.lapse;
  if (!(files == nullptr ? lapse.leave_out() : lapse.add(job.timepoint, *files))) return;
  PredictedFiles all = lapse.files();
  if (lapse.failed() == 0) {
    attempt(lapse.image(), Part::writing, [&] {
      all = lapse.join();
      for (const auto& [kind, path] : record_.outdated(lapse.name(), all)) {
        std::error_code ignored;
        if (may_replace(path)) std::filesystem::remove_all(path, ignored);
      }
      record_.add(lapse.name(), lapse.image(), lapse.stamp(), all, 0);
    });
  } else if (!all.empty()) {
    log::warn("{}: {} of {} time points failed, so the others stay in a file each",
              lapse.image(),
              lapse.failed(),
              lapse.frames());
  }
  const std::lock_guard lock(books_.mutex);
  for (const auto& [kind, path] : all) books_.results.add(kind, path);
}

bool PredictPipeline::read(const JobPointer& job) {
  const data::Sample& frame = job->sample;
  const std::string key = predictor_.x_key();
  if (!attempt(frame.id, Part::reading, [&] {
        const auto source = frame.sources.find(source_key(predictor_));
        if (source != frame.sources.end()) {  // transforms may drop it
          job->path = source->second.path;
          job->stamp = stamp_of(source->second, job->content, settings_);
        }
        if (is_done(*job)) return;
        const perf::Scope scope("read");
        const pipelines::StageWork work(stages_.read, 1, true);
        auto input = std::make_shared<inference::ModelInput>(
            predictor_.transforms().apply(frame,
                                          key,
                                          config_.data.spacing_um,
                                          scores_ != nullptr ? INT64_MAX
                                          : shares_rows_     ? -1
                                                             : inference::by_rows_from()));
        predictor_.check(*input);
        if (scores_ != nullptr)
          job->truth = scores_->target_of(input->sample, predictor_.y_key(), key);
        job->input = std::move(input);
      })) {
    if (job->lapse) end_frame(*job, nullptr);
    return true;
  }
  if (!job->input) return true;
  int64_t bytes = job->input->is_by_rows() ? 0 : 8;
  for (const int64_t side : job->input->shape) bytes *= side;
  return ready_.push(job, bytes);
}

bool PredictPipeline::is_done(const Job& job) {
  if (!config_.predict.resume || scores_ != nullptr) return false;
  const auto files = record_.find(job.name(), job.stamp);
  if (!files) return false;
  {
    const std::lock_guard lock(books_.mutex);
    if (!job.lapse)
      for (const auto& [kind, path] : *files) books_.results.add(kind, path);
    if (!processes_.is_first()) record_.add(job.name(), job.id(), job.stamp, *files);  // who tells
    ++books_.done;
    ++books_.resumed;
  }
  if (job.lapse) end_frame(job, &*files);
  return true;
}

void PredictPipeline::write_all() {
  while (std::optional<Rows> rows = rows_.pop()) {
    Job& job = *rows->job;
    const bool is_last = !rows->values.defined();
    const perf::Scope scope("write");
    const pipelines::StageWork work(stages_.write, is_last ? 1 : 0, true);
    if (is_last && shares_rows_) join_rows(job);
    if (!job.is_abandoned && !attempt(job.id(), Part::writing, [&] {
          if (is_last) return conclude(job);
          if (job.journal && !rows->is_kept) {
            job.journal->append(
                data::to_image(rows->values, inference::dtype_of(predictor_.finish()), {}),
                rows->values.size(1));
          }
          if (!shares_rows_ || !job.journal) job.files->take(rows->values);
        }))
      job.is_abandoned = true;
    if (is_last && job.is_abandoned && job.lapse) end_frame(job, nullptr);
    if (is_last && !job.is_abandoned && job.lapse) end_frame(job, &job.files->files());
    if (is_last) job.files.reset();
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

void PredictPipeline::conclude(Job& job) {
  struct Finishing {
    explicit Finishing(std::atomic<bool>& flag) : flag(flag) { flag = true; }
    ~Finishing() { flag = false; }
    std::atomic<bool>& flag;
  } finishing(books_.is_finishing);
  job.files->finish();
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
