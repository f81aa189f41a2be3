#include "app/predict/classes.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "config/text_of.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "device/memory.h"
#include "inference/averages.h"
#include "inference/decoder.h"
#include "inference/input.h"
#include "nn/classifier.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stamp.h"
#include "pipelines/job/tally.h"
#include "pipelines/predict/class_files.h"
#include "tasks/annotation_targets.h"
#include "tasks/classification/labels.h"
#include "tasks/metric_set.h"

namespace cytra::app {
namespace {

using config::Node;

void expect_plain_classes(const PredictConfig& config) {
  const auto refuse = [](const std::string& option) {
    throw ConfigError(
        fmt::format("{}: a classifier gives a table, which has no use for it", option));
  };
  if (config.predict.dry_run) refuse("predict.dry_run");
  if (config.predict.max_detections) refuse("predict.max_detections");
  if (config.trainer.devices > 1) refuse("trainer.devices");
  if (config.trainer.precision && *config.trainer.precision != "32") refuse("trainer.precision");
  const inference::EngineOptions& engine = config.performance.engine;
  if (engine.backend != "auto" && engine.backend != "eager") refuse("performance.backend");
  if (engine.quantization != "none") refuse("performance.quantization");
  for (const auto& [key, value] : config.inference_args.map)
    if (!value.is_null() && !inference::WindowChanges::is_auto(value)) refuse(value.where());
}

/// An image with what is computed from it.
struct ClassJob {
  const data::Sample* input;
  pipelines::ClassifiedImage image;
  at::Tensor values = {};  // (C,[D,]H,W), until its class is known
  std::vector<double> probabilities = {};
  int64_t truth = 0;  // with data.with_target
};

/// The model with all that comes before and after it.
class Classifying {
 public:
  explicit Classifying(const inference::Subject& subject)
      : model_(inference::mean_of(subject.models)),
        device_(subject.device),
        transforms_(model_.config.at("data.transforms"), ""),
        decoder_(inference::decoder_of(model_.config.at("task"))) {
    model_.place(device_, device::uses_tensor_cores("32", device_));
  }
  at::Tensor load(const data::Sample& input,
                  const std::string& x_key,
                  const std::vector<double>& spacing_um) const {
    const inference::ModelInput loaded = transforms_.apply(input, x_key, spacing_um);
    if (loaded.shape.at(0) == model_.in_channels) return loaded.rows(0, loaded.shape[1]);
    throw DataError(fmt::format(
        "{}: {} channels, the model expects {}", input.id, loaded.shape[0], model_.in_channels));
  }
  /// Tells the classes of images, those of equal size together.
  void run(const std::vector<ClassJob*>& jobs) const {
    const c10::InferenceMode inference_mode;
    for (auto first = jobs.begin(); first != jobs.end();) {
      const auto last = std::find_if(first, jobs.end(), [&](const ClassJob* job) {
        return job->values.sizes() != (*first)->values.sizes();
      });
      std::vector<at::Tensor> images;
      std::for_each(first, last, [&](const ClassJob* job) { images.push_back(job->values); });
      const at::Tensor made =
          decoder_
              ->decode(model_.forward(device::to_device(at::stack(images), device_)).at(0),
                       "probability")
              .flatten(1)
              .to(at::TensorOptions(at::kCPU).dtype(at::kDouble))
              .contiguous();
      const double* values = made.const_data_ptr<double>();
      for (; first != last; ++first, values += made.size(1)) {
        (*first)->probabilities.assign(values, values + made.size(1));
        (*first)->values.reset();
      }
    }
  }
  const inference::LoadedModel& model() const { return model_; }

 private:
  inference::LoadedModel model_;  // the mean of all
  c10::Device device_;
  inference::InputTransforms transforms_;
  std::shared_ptr<inference::Decoder> decoder_;
};

/// The task's metrics of images whose class is known.
std::map<std::string, double> class_scores(const std::vector<ClassJob>& jobs,
                                           const Node& task,
                                           const tasks::ImageLabels& labels) {
  tasks::MetricSet metrics(task.at("metrics"), {metrics::Metric::Input::masks}, labels.num_classes);
  const auto number = [](int64_t k) {
    return at::full({1, 1, 1, 1}, static_cast<double>(k), at::kFloat);
  };
  for (const ClassJob& job : jobs) {
    if (job.probabilities.empty()) continue;
    const auto& all = job.probabilities;
    const at::Tensor best = number(std::max_element(all.begin(), all.end()) - all.begin());
    metrics.update(
        [&](metrics::Metric::Input) { return labels.compared(best, number(job.truth)); });
  }
  return tasks::with_class_names(metrics.compute(), labels.class_names, 0);
}

}  // namespace

bool tells_classes(const inference::Subject& subject) {
  return dynamic_cast<const nn::Classifier*>(subject.first().network.get()) != nullptr;
}

int predict_classes(cli::Run run, const PredictConfig& config, const inference::Subject& subject) {
  expect_plain_classes(config);
  const Classifying classifier(subject);
  const inference::LoadedModel& model = classifier.model();
  const Node& task = model.config.at("task");
  const tasks::ImageLabels labels = tasks::image_labels_of(task);
  const std::string x_key = task.get<std::string>("x_key", "raw");
  std::vector<std::string> keys{x_key};
  if (config.data.scores()) keys.push_back(task.get<std::string>("y_key"));

  pipelines::Tally tally(run.json);
  pipelines::InputWants wants{model.in_channels, model.spatial_dims};
  wants.source_keys = model.config.get<std::vector<std::string>>("data.source_keys", {});
  std::vector<data::Sample> inputs =
      pipelines::list_inputs(config.data, keys, tally.leaving_out(), wants);
  inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
      static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  tally.images += static_cast<int64_t>(inputs.size());
  const std::string folder = open_run_folder(run, config.predict.resume);
  const RunLock lock(folder);
  log::info("{}: {} images on {}", model.path, tally.images, device::describe(subject.device));

  const std::string settings = fmt::format("{} {} {} {}",
                                           model.fingerprint,
                                           config::to_json(model.config.at("data.transforms")),
                                           config.data.axes.value_or(""),
                                           fmt::join(config.data.spacing_um, ","));
  std::vector<std::string> names;
  for (int64_t k = 0; k < labels.num_classes; ++k) names.push_back(labels.name_of(k));
  pipelines::ClassFiles files(folder, names);
  std::vector<ClassJob> jobs;
  pipelines::OutputNames unique;
  for (const data::Sample& input : inputs) {
    const data::Source& source = input.sources.at(x_key);
    jobs.push_back({&input, {unique.next(source), source.path, ""}});
  }
  using Phase = pipelines::Tally::Phase;
  const auto attempt = [&](const ClassJob& job, Phase phase, const auto& work) {
    tally.attempt(job.input->id, phase, config.data.on_error == "fail", work);
  };
  const auto count = [&](bool was_there) {
    const std::lock_guard guard(tally.mutex);
    ++tally.done;
    if (was_there) ++tally.resumed;
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      tally.conclude(folder, "classified", signal, pipelines::kResumeHint);
    });
    Progress progress("classifying", static_cast<int64_t>(jobs.size()));
    const auto step = static_cast<std::size_t>(config.data.batch_size);
    for (std::size_t first = 0; first < jobs.size(); first += step) {
      const std::size_t end = std::min(first + step, jobs.size());
      std::vector<ClassJob*> loaded;
      for (std::size_t i = first; i < end; ++i) {
        ClassJob& job = jobs[i];
        attempt(job, Phase::reading, [&] {
          job.image.stamp =
              pipelines::stamp_of(*job.input, pipelines::content_of(*job.input), settings);
          if (config.data.scores()) job.truth = labels.number_of(*job.input, keys.back());
          job.probabilities = files.find(job.image);
          if (!job.probabilities.empty()) return count(true);
          job.values = classifier.load(*job.input, x_key, config.data.spacing_um);
          loaded.push_back(&job);
        });
      }
      classifier.run(loaded);
      for (ClassJob* job : loaded) {
        attempt(*job, Phase::writing, [&] {
          if (!std::isfinite(job->probabilities.front())) {  // then all are, as of any softmax
            job->probabilities.clear();
            throw DataError(job->image.path + ": the model makes NaN or infinity of it");
          }
          files.add(job->image, job->probabilities);
          count(false);
        });
      }
      progress.update(static_cast<int64_t>(end));
    }
  }
  std::vector<pipelines::ClassifiedImage> done;
  for (const ClassJob& job : jobs)
    if (!job.probabilities.empty()) done.push_back(job.image);
  tally.results.add("table", files.finish(done));
  if (config.data.scores())
    for (const auto& [name, value] : class_scores(jobs, task, labels))
      tally.results.add(name, value);
  tally.conclude(folder, "classified");
  return tally.code;
}

}  // namespace cytra::app
