#include "pipelines/predict/number_work.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "device/fast_precision.h"
#include "device/memory.h"
#include "inference/decoders/decoder.h"
#include "inference/outputs/draw_overlay.h"
#include "inference/predictor/averages.h"
#include "io/csv.h"
#include "ops/windows/sums.h"
#include "tasks/annotation_targets.h"
#include "tasks/metric_set.h"

namespace cytra::pipelines {

using config::Node;
using tasks::ImageTarget;

struct NumberWork::Job final : PredictJob {
  inference::ModelInput input;  // until its numbers are known
  at::Tensor heat;              // of its picture, ([d,]h,w)
  std::vector<double> numbers;
  static Job& of(PredictJob& job) { return static_cast<Job&>(job); }
};

struct NumberWork::Member {
  inference::Forward forward;
  std::shared_ptr<inference::Decoder> decoder;  // each has its own units
  double temperature;
};

namespace {

/// What images tell, and what is true of them.
struct Told {
  std::vector<double> numbers, truth;
};

/// The metrics of images whose target is known.
std::map<std::string, double> scores_of(const std::vector<Told>& told,
                                        const Node& task,
                                        const ImageTarget& target) {
  const Node* given = task.find_direct("metrics");
  tasks::MetricSet metrics(
      target.metrics(given == nullptr ? Node() : *given), target.inputs(), target.count);
  const auto voxel = [](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({1, -1, 1, 1});
  };
  for (const Told& one : told) {
    metrics.update([&](metrics::Metric::Input input) {
      return target.compared(voxel(one.numbers), voxel(one.truth), input);
    });
  }
  return tasks::with_class_names(metrics.compute(), target.names, 0);
}

/// confusion.csv: images by their class (rows) and the class that is found (columns).
std::string write_confusion(const std::string& folder,
                            const std::vector<Told>& told,
                            const ImageTarget& target) {
  const auto classes = static_cast<std::size_t>(target.count);
  std::vector<std::vector<int64_t>> counts(classes, std::vector<int64_t>(classes));
  for (const auto& [numbers, truth] : told) {
    const auto found = std::ranges::max_element(numbers);
    ++counts[static_cast<std::size_t>(truth[0])][static_cast<std::size_t>(found - numbers.begin())];
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
  std::vector<std::string> columns{"image"};
  if (target.kind == ImageTarget::Kind::values) {
    columns.insert(columns.end(), target.names.begin(), target.names.end());
    return columns;
  }
  columns.emplace_back(target.kind == ImageTarget::Kind::labels ? "labels" : "class");
  for (int64_t k = 0; k < target.count; ++k) columns.push_back("probability_" + target.name_of(k));
  return columns;
}

/// The cells of columns_of().
std::vector<std::string> table_cells(const std::string& path,
                                     const ImageTarget& target,
                                     const std::vector<double>& numbers,
                                     double threshold) {
  std::vector<std::string> cells{io::safe_cell(path)};
  if (target.kind == ImageTarget::Kind::classes) {
    const auto found = std::ranges::max_element(numbers) - numbers.begin();
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

NumberWork::NumberWork(const inference::Subject& subject,
                       const InputOptions& data,
                       const PredictOptions& options)
    : model_(inference::mean_of(subject.models)),
      device_(subject.device),
      transforms_(model_.config.at("data.transforms"), ""),
      target_(tasks::image_target_of(model_.config.at("task"))),
      x_key_(model_.config.get<std::string>("task.x_key", "raw")),
      spacing_um_(data.spacing_um),
      threshold_(options.threshold),
      has_pictures_(options.overlay && subject.first().network),  // exports have no saliency
      has_truth_(data.scores()) {
  const double temperature = options.temperature_number();
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

NumberWork::~NumberWork() = default;

std::vector<std::string> NumberWork::columns(bool with_target) const {
  std::vector<std::string> columns{x_key_};
  if (with_target) columns.insert(columns.end(), target_.columns.begin(), target_.columns.end());
  return columns;
}

InputWants NumberWork::wants() const {
  InputWants wants = wants_of(model_);
  wants.spatial_dims = model_.spatial_dims;
  return wants;
}

PredictJobPointer NumberWork::new_job() const {
  return std::make_shared<Job>();
}

std::vector<double> NumberWork::numbers_of(const std::string& name,
                                           const std::string& stamp,
                                           const std::string& image) const {
  auto numbers = run().record.line(name, stamp, image).get<std::vector<double>>("numbers");
  if (numbers.size() == static_cast<std::size_t>(target_.count)) return numbers;
  throw DataError(image + ": predictions.jsonl has a line that predict did not write");
}

std::optional<inference::ResultFiles> NumberWork::done_before(const PredictJob& job) const {
  if (has_truth_) target_.of(job.sample);  // so that what is wrong with it is told now
  if (!run().record.has(job.name(), job.stamp)) return std::nullopt;
  try {
    numbers_of(job.name(), job.stamp, job.path);
  } catch (const Error&) {
    return std::nullopt;
  }
  return has_pictures_ ? PredictWork::done_before(job) : inference::ResultFiles();
}

int64_t NumberWork::read(PredictJob& of) {
  Job& job = Job::of(of);
  if (has_truth_) target_.of(job.sample);
  job.input = transforms_.apply(job.sample, x_key_, spacing_um_);
  if (job.input.shape.at(0) != model_.in_channels) {
    throw DataError(
        "{}: {} channels, the model expects {}", job.id(), job.input.shape[0], model_.in_channels);
  }
  int64_t bytes = 8;
  for (const int64_t side : job.input.shape) bytes *= side;
  return bytes;
}

bool NumberWork::fits(const PredictJob& first, const PredictJob& next) const {
  return static_cast<const Job&>(first).input.shape == static_cast<const Job&>(next).input.shape;
}

void NumberWork::compute(const std::vector<PredictJobPointer>& jobs,
                         Progress& /*progress*/,
                         const Send& /*send*/) {
  const c10::InferenceMode inference_mode;
  std::vector<at::Tensor> images;
  for (const PredictJobPointer& job : jobs) {
    const inference::ModelInput& input = Job::of(*job).input;
    images.push_back(input.rows(0, input.shape[1]));
  }
  const at::Tensor batch = device::to_device(at::stack(images), device_);
  at::Tensor sum, maps;
  for (const Member& member : members_) {
    const std::vector<at::Tensor> outputs = member.forward(batch);
    const at::Tensor own =
        member.decoder->in_units(outputs.at(0)).to(at::kFloat) / member.temperature;
    sum = sum.defined() ? sum + own : own;
    if (!has_pictures_) continue;
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
  if (has_pictures_) maps = maps.cpu();
  const double* values = results.const_data_ptr<double>();
  for (std::size_t i = 0; i < jobs.size(); ++i, values += results.size(1)) {
    Job& job = Job::of(*jobs[i]);
    job.numbers.assign(values, values + results.size(1));
    const auto shown = std::max_element(values, values + results.size(1)) - values;
    if (has_pictures_) job.heat = maps[static_cast<int64_t>(i)][shown].clone();
    job.is_computed = true;
  }
}

void NumberWork::write(PredictJob& of) {
  Job& job = Job::of(of);
  const auto is_finite = [](double number) { return std::isfinite(number); };
  if (!std::ranges::all_of(job.numbers, is_finite))
    throw DataError(job.path + ": the model makes NaN or infinity of it");
  job.more = fmt::format("{{\"numbers\":[{}]}}", fmt::join(job.numbers, ","));
  if (!has_pictures_) return;
  job.files = {{"saliency", job.stem + "_saliency.png"}};
  io::write_png(job.files[0].second,
                inference::draw_heat(job.input.shown(0, job.input.shape[1]), job.heat));
}

void NumberWork::finish(const std::vector<Done>& images, cli::Results& results) {
  run().record.read();
  std::vector<std::vector<std::string>> rows;
  std::vector<Told> told;
  for (const Done& image : images) {
    const std::string& path = image.input.sources.at(x_key_).path;
    const std::vector<double> numbers = numbers_of(image.name, image.stamp, path);
    rows.push_back(table_cells(path, target_, numbers, threshold_));
    if (has_truth_) told.push_back({numbers, target_.of(image.input)});
  }
  const std::string table = run().folder + "/predictions.csv";
  io::write_table(table, columns_of(target_), rows);
  results.add("table", table);
  if (told.empty()) return;
  if (target_.kind == ImageTarget::Kind::classes)
    results.add("confusion", write_confusion(run().folder, told, target_));
  for (const auto& [name, value] : scores_of(told, model_.config.at("task"), target_))
    results.add(name, value);
}

}  // namespace cytra::pipelines
