#include "app/predict/whole_images.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/predict/image_options.h"
#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "base/strings.h"
#include "config/text_of.h"
#include "device/device.h"
#include "device/error.h"
#include "device/fast_precision.h"
#include "device/memory.h"
#include "device/precision.h"
#include "inference/decoders/decoder.h"
#include "inference/outputs/heat.h"
#include "inference/predictor/averages.h"
#include "inference/predictor/input.h"
#include "io/csv.h"
#include "nn/classifier.h"
#include "ops/windows/sums.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stamp.h"
#include "pipelines/job/tally.h"
#include "pipelines/predict/whole_image_files.h"
#include "tasks/annotation_targets.h"
#include "tasks/metric_set.h"
#include "tasks/whole_images/image_target.h"

namespace cytra::app {
namespace {

using config::Node;
using tasks::ImageTarget;

void expect_table(const PredictConfig& config) {
  expect_no_image_options(
      config, "this model tells of whole images, and gives a table, which has no use for it");
  if (config.predict.max_detections)
    throw ConfigError("predict.max_detections: it is for detectors; this model gives a table");
  const std::string precision = config.trainer.precision.value_or("32");
  if (device::precision_of(precision).compute != at::kFloat) {
    throw ConfigError(fmt::format(
        "trainer.precision={}: whole images are predicted in float32; expected 32", precision));
  }
  for (const auto& [key, value] : config.inference_args.map) {
    if (value.is_null() || inference::WindowChanges::is_auto(value)) continue;
    throw ConfigError(value.where() + ": this model takes whole images, no windows");
  }
}

/// An image with what is computed from it.
struct WholeImageJob {
  const data::Sample* input;
  pipelines::WholeImage image;
  inference::ModelInput loaded = {};  // until its numbers are known
  at::Tensor heat = {};               // of its picture, ([d,]h,w)
  std::vector<double> numbers = {}, truth = {};
};

/// The models with all that comes before and after them.
class WholeImageModel {
 public:
  WholeImageModel(const inference::Subject& subject, double temperature)
      : model_(inference::mean_of(subject.models)),
        device_(subject.device),
        transforms_(model_.config.at("data.transforms"), ""),
        target_(tasks::image_target_of(model_.config.at("task"))) {
    if (temperature != 1 && target_.kind == ImageTarget::Kind::values) {
      throw ConfigError(
          "predict.temperature: it is for probabilities, and this model gives values; expected 1");
    }
    for (const inference::LoadedModel& one : subject.models) {
      members_.push_back({one.forward,
                          inference::decoder_of(one.config.at("task")),
                          inference::temperature_of(one, temperature)});
    }
    transforms_.expect_channels(model_.in_channels);
    model_.place(device_, device::uses_tensor_cores("32", device_));
  }
  inference::ModelInput load(const data::Sample& input,
                             const std::string& x_key,
                             const std::vector<double>& spacing_um) const {
    inference::ModelInput loaded = transforms_.apply(input, x_key, spacing_um);
    if (loaded.shape.at(0) == model_.in_channels) return loaded;
    throw DataError(fmt::format(
        "{}: {} channels, the model expects {}", input.id, loaded.shape[0], model_.in_channels));
  }
  /// Tells the numbers of images, those of equal size together, and, `with_heat`, what they are
  /// made of.
  void run(const std::vector<WholeImageJob*>& jobs, bool with_heat) const {
    const c10::InferenceMode inference_mode;
    for (auto from = jobs.begin(); from != jobs.end();) {
      const auto to = std::find_if(from, jobs.end(), [&](const WholeImageJob* job) {
        return job->loaded.shape != (*from)->loaded.shape;
      });
      run_batch({from, to}, with_heat);
      from = to;
    }
  }
  const inference::LoadedModel& loaded() const { return model_; }
  const ImageTarget& target() const { return target_; }

 private:
  struct Member {
    inference::Forward forward;
    std::shared_ptr<inference::Decoder> decoder;  // each has its own units
    double temperature;
  };
  void run_batch(const std::vector<WholeImageJob*>& jobs, bool with_heat) const {
    std::vector<at::Tensor> images;
    for (const WholeImageJob* job : jobs)
      images.push_back(job->loaded.rows(0, job->loaded.shape[1]));
    const at::Tensor batch = device::to_device(at::stack(images), device_);
    at::Tensor sum, maps;
    for (const Member& member : members_) {
      const std::vector<at::Tensor> outputs = member.forward(batch);
      const at::Tensor own =
          member.decoder->in_units(outputs.at(0)).to(at::kFloat) / member.temperature;
      sum = sum.defined() ? sum + own : own;
      if (!maps.defined())
        maps = outputs.at(1);
      else if (maps.sizes() == outputs.at(1).sizes())
        maps = maps + outputs[1];
    }
    const ops::Finish finish = members_.front().decoder->finish(target_.form(), 0.5);
    const at::Tensor results = ops::finish(sum / static_cast<double>(members_.size()), {}, finish)
                                   .flatten(1)
                                   .to(at::TensorOptions(at::kCPU).dtype(at::kDouble))
                                   .contiguous();
    if (with_heat) maps = maps.cpu();
    const double* values = results.const_data_ptr<double>();
    for (std::size_t i = 0; i < jobs.size(); ++i, values += results.size(1)) {
      jobs[i]->numbers.assign(values, values + results.size(1));
      const auto shown = std::max_element(values, values + results.size(1)) - values;
      if (with_heat) jobs[i]->heat = maps[static_cast<int64_t>(i)][shown].clone();
    }
  }
  inference::LoadedModel model_;  // what is common to all
  std::vector<Member> members_;
  c10::Device device_;
  inference::InputTransforms transforms_;
  ImageTarget target_;
};

/// The metrics of images whose target is known.
std::map<std::string, double> scores_of(const std::vector<WholeImageJob>& jobs,
                                        const Node& task,
                                        const ImageTarget& target) {
  const Node* given = task.find_direct("metrics");
  tasks::MetricSet metrics(
      target.metrics(given == nullptr ? Node() : *given), target.inputs(), target.count);
  const auto voxel = [](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({1, -1, 1, 1});
  };
  for (const WholeImageJob& job : jobs) {
    if (job.numbers.empty()) continue;
    metrics.update([&](metrics::Metric::Input input) {
      return target.compared(voxel(job.numbers), voxel(job.truth), input);
    });
  }
  return tasks::with_class_names(metrics.compute(), target.names, 0);
}

/// confusion.csv: images by their class (rows) and the class that is found (columns).
std::string write_confusion(const std::string& folder,
                            const std::vector<WholeImageJob>& jobs,
                            const ImageTarget& target) {
  const auto classes = static_cast<std::size_t>(target.count);
  std::vector<std::vector<int64_t>> counts(classes, std::vector<int64_t>(classes));
  for (const WholeImageJob& job : jobs) {
    if (job.numbers.empty()) continue;
    const auto found = std::max_element(job.numbers.begin(), job.numbers.end());
    ++counts[static_cast<std::size_t>(job.truth[0])]
            [static_cast<std::size_t>(found - job.numbers.begin())];
  }
  std::vector<std::string> columns{"class"};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t k = 0; k < classes; ++k) {
    const std::string name = target.name_of(static_cast<int64_t>(k));
    columns.push_back("found_" + name);
    auto& row = rows.emplace_back(1, io::safe_cell(name));
    for (const int64_t count : counts[k]) row.push_back(std::to_string(count));
  }
  std::string path = folder + "/confusion.csv";
  io::write_table(path, columns, rows);
  return path;
}

std::vector<std::string> columns_of(const ImageTarget& target) {
  std::vector<std::string> columns;
  if (target.kind == ImageTarget::Kind::values) return target.names;
  columns.emplace_back(target.kind == ImageTarget::Kind::labels ? "labels" : "class");
  for (int64_t k = 0; k < target.count; ++k) columns.push_back("probability_" + target.name_of(k));
  return columns;
}

/// The cells of columns_of().
std::vector<std::string> table_cells(const ImageTarget& target,
                                     const std::vector<double>& numbers,
                                     double threshold) {
  std::vector<std::string> cells;
  if (target.kind == ImageTarget::Kind::classes) {
    const auto found = std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
    cells.push_back(io::safe_cell(target.name_of(found)));
  } else if (target.kind == ImageTarget::Kind::labels) {
    std::vector<std::string> found;
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (numbers[k] > threshold) found.push_back(target.name_of(static_cast<int64_t>(k)));
    cells.push_back(io::safe_cell(join(found, ";")));
  }
  for (const double number : numbers) cells.push_back(io::cell_of(number));
  return cells;
}

}  // namespace

bool is_of_whole_images(const inference::Subject& subject) {
  const inference::LoadedModel& model = subject.first();
  const bool is_known = dynamic_cast<const nn::Classifier*>(model.network.get()) != nullptr;
  const auto task = model.config.get<std::string>("task._target_", "");
  if (is_known || !tasks::is_of_whole_images(task)) return is_known;
  throw ConfigError(
      model.path +
      ": an exported network on whole images; `predict` takes the checkpoint that it was made of");
}

int predict_whole_images(cli::Run run,
                         const PredictConfig& config,
                         const inference::Subject& subject) {
  expect_table(config);
  const bool has_pictures = config.predict.overlay, has_truth = config.data.scores();
  const WholeImageModel network(subject, config.predict.temperature_number());
  const inference::LoadedModel& model = network.loaded();
  const ImageTarget& target = network.target();
  const auto count_of_numbers = static_cast<std::size_t>(target.count);
  const Node& task = model.config.at("task");
  const std::string x_key = task.get<std::string>("x_key", "raw");
  std::vector<std::string> keys{x_key};
  if (has_truth) keys.insert(keys.end(), target.columns.begin(), target.columns.end());

  pipelines::Tally tally(run.json);
  pipelines::InputWants wants = pipelines::wants_of(model);
  wants.spatial_dims = model.spatial_dims;
  std::vector<data::Sample> inputs =
      pipelines::list_inputs(config.data, keys, tally.leaving_out(), wants);
  inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
      static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  tally.images += static_cast<int64_t>(inputs.size());
  const std::string folder = open_run_folder(run, config.predict.resume);
  const RunLock lock(folder);
  log::info("{}: {} images on {}", model.path, tally.images, device::describe(subject.device));

  const std::string settings = fmt::format("{} {} {} {} {}",
                                           model.fingerprint,
                                           config.predict.temperature_number(),
                                           config::to_json(model.config.at("data.transforms")),
                                           config.data.axes.value_or(""),
                                           fmt::join(config.data.spacing_um, ","));
  pipelines::WholeImageFiles files(folder, has_pictures);
  std::vector<WholeImageJob> jobs;
  pipelines::OutputNames names;
  for (const data::Sample& input : inputs) {
    const data::Source& source = input.sources.at(x_key);
    jobs.push_back({&input, {names.next(source), source.path, ""}});
  }
  using Phase = pipelines::Tally::Phase;
  const auto attempt = [&](const WholeImageJob& job, Phase phase, const auto& work) {
    tally.attempt(job.input->id, phase, config.data.on_error == "fail", work);
  };
  const auto count = [&](bool was_there) {
    const std::lock_guard guard(tally.mutex);
    ++tally.done;
    if (was_there) ++tally.resumed;
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      tally.conclude(folder, "predicted", signal, pipelines::kResumeHint);
    });
    Progress progress("predicting", static_cast<int64_t>(jobs.size()));
    const auto step = static_cast<std::size_t>(config.data.batch_size);
    for (std::size_t first = 0; first < jobs.size(); first += step) {
      const std::size_t end = std::min(first + step, jobs.size());
      std::vector<WholeImageJob*> loaded;
      for (std::size_t i = first; i < end; ++i) {
        WholeImageJob& job = jobs[i];
        attempt(job, Phase::reading, [&] {
          job.image.stamp =
              pipelines::stamp_of(*job.input, pipelines::content_of(*job.input), settings);
          if (has_truth) job.truth = target.of(*job.input);
          job.numbers = files.find(job.image, count_of_numbers);
          if (!job.numbers.empty()) return count(true);
          job.loaded = network.load(*job.input, x_key, config.data.spacing_um);
          loaded.push_back(&job);
        });
      }
      try {
        device::guarded([&] { network.run(loaded, has_pictures); });
      } catch (const Error&) {  // of one of them, or of all: each by itself tells
        for (WholeImageJob* job : loaded) {
          job->numbers.clear();
          attempt(*job, Phase::computing, [&] { network.run({job}, has_pictures); });
        }
      }
      for (WholeImageJob* job : loaded) {
        if (job->numbers.empty()) continue;
        attempt(*job, Phase::writing, [&] {
          const inference::ModelInput input = std::exchange(job->loaded, {});
          const std::vector<double> numbers = std::exchange(job->numbers, {});
          if (!std::all_of(
                  numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); }))
            throw DataError(job->image.path + ": the model makes NaN or infinity of it");
          if (has_pictures) {
            const io::Image picture =
                inference::draw_heat(input.shown(0, input.shape[1]), std::exchange(job->heat, {}));
            files.add(job->image, numbers, &picture);
          } else {
            files.add(job->image, numbers);
          }
          job->numbers = numbers;
          count(false);
        });
      }
      progress.update(static_cast<int64_t>(end));
    }
  }
  std::vector<pipelines::WholeImage> done;
  for (const WholeImageJob& job : jobs)
    if (!job.numbers.empty()) done.push_back(job.image);
  tally.results.add(
      "table",
      files.finish(
          done, columns_of(target), count_of_numbers, [&](const std::vector<double>& numbers) {
            return table_cells(target, numbers, config.predict.threshold);
          }));
  if (has_truth && !done.empty()) {
    if (target.kind == ImageTarget::Kind::classes)
      tally.results.add("confusion", write_confusion(folder, jobs, target));
    for (const auto& [name, value] : scores_of(jobs, task, target)) tally.results.add(name, value);
  }
  tally.conclude(folder, "predicted");
  return tally.code;
}

}  // namespace cytra::app
