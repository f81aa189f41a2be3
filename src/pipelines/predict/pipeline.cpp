// Reads images; compute.cpp predicts them, and write.cpp writes their results.
#include "pipelines/predict/pipeline.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/Parallel.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
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

}  // namespace cytra::pipelines
