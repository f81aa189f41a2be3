#include "app/predict/pipeline.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "ops/windows/sums.h"
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

int64_t writer_threads() {
  constexpr int64_t kMost = 4;
  return std::clamp<int64_t>(at::get_num_threads(), 1, kMost);
}

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
      ready_(kReadAhead, quarter_of_memory()) {}

void PredictPipeline::run(const std::vector<data::Sample>& inputs, Progress& progress) {
  shares_rows_ = static_cast<int64_t>(inputs.size()) < processes_.place().size;
  // Processes that share the rows of an image join them in the images' order.
  const int64_t count = shares_rows_ ? 1 : writer_threads();
  for (int64_t i = 0; i < count; ++i) rows_.emplace_back(kRowsAhead, quarter_of_memory() / count);
  std::exception_ptr error;
  std::mutex of_error;
  std::thread reader([&] {
    const c10::InferenceMode inference_mode;
    try {
      read_all(inputs);
      ready_.close();
    } catch (...) {
      ready_.fail(std::current_exception());
    }
  });
  std::vector<std::thread> writers;
  for (Queue<Rows>& rows : rows_) {
    writers.emplace_back([&] {
      const c10::InferenceMode inference_mode;
      try {
        write_all(rows);
      } catch (...) {
        const std::lock_guard lock(of_error);
        if (!error) error = std::current_exception();
        fail_rows(error);
      }
    });
  }
  std::exception_ptr own;
  try {
    const c10::InferenceMode inference_mode;
    compute_all(progress);
    for (Queue<Rows>& rows : rows_) rows.close();
  } catch (...) {
    own = std::current_exception();
    fail_rows(own);
  }
  ready_.close();
  reader.join();
  for (std::thread& writer : writers) writer.join();
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

}  // namespace cytra::app
