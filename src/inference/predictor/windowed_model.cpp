#include "inference/predictor/windowed_model.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config/schema.h"
#include "data/transforms/load_image.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "inference/windows/device_rows.h"
#include "inference/windows/windows.h"
#include "nn/dropout.h"
#include "nn/model.h"

namespace cytra::inference {
namespace {

using config::Node;

/// Whether `changes` ask for windows larger than those of the training; they don't where the
/// training set a size for them.
bool windows_grow(const Node& changes, const Node& config) {
  const Node* asked = changes.find_direct("roi_size");
  if (asked == nullptr || !WindowChanges::is_auto(*asked)) return false;
  const Node* patch = config.find("patch_shape");
  const Node* roi = config.find("task.inference_args.roi_size");
  return patch == nullptr || roi == nullptr || config::to_json(*patch) == config::to_json(*roi);
}

/// The checkpoint's options of windows with `changes`.
SlidingWindowOptions window_options(const Node& config, const Node& changes) {
  Node window = config.at("task.inference_args");
  for (const auto& [key, value] : changes.map) {
    const bool is_auto = key == "roi_size" && WindowChanges::is_auto(value);
    if (!value.is_null() && !is_auto) window.set(key, value);
  }
  auto options = config::parse<SlidingWindowOptions>(window);
  options.progress = false;
  return options;
}

/// The configuration data.transforms, by which stacks are loaded as such also for a 2D model. One
/// that is told to process them slice by slice takes nothing else.
Node transforms_of(const Node& config, const Node& changes) {
  Node transforms = config.at("data.transforms");
  const auto slices = [](const Node* dim) { return dim != nullptr && !dim->is_null(); };
  const bool is_told = slices(changes.find_direct("spatial_dim")) ||
                       slices(config.find("task.inference_args.spatial_dim"));
  for (const char* split : {"valid", "predict"}) {
    Node* list = transforms.find_direct(split);
    if (list == nullptr) continue;
    data::set_load_option(*list, "allow_stacks", Node::make_boolean(true));
    if (is_told) data::set_load_option(*list, "spatial_dims", Node::make_integer(3));
  }
  return transforms;
}

}  // namespace

/// A model and its engine, which is made of the first windows that come.
class EnsembleMember {
 public:
  EnsembleMember(EngineModel model,
                 const EngineOptions& options,
                 std::shared_ptr<Decoder> decoder,
                 double temperature)
      : model_(std::move(model)),
        options_(options),
        decoder_(std::move(decoder)),
        temperature_(temperature) {}
  std::vector<Tensor> sample(const Tensor& windows, int64_t number) {
    const nn::SampleDropout dropping(static_cast<uint64_t>(number));
    return run(windows);
  }
  std::vector<Tensor> run(const Tensor& windows) {
    std::vector<Tensor> outputs = engine_for(windows).run(windows);
    outputs.at(0) = decoder_->in_units(outputs[0]);
    if (temperature_ != 1) outputs[0] = outputs[0].to(at::kFloat) / temperature_;
    return outputs;
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return engine_ ? engine_->text() : "";
  }

 private:
  Engine& engine_for(const Tensor& windows) {
    const std::lock_guard lock(mutex_);
    if (!engine_) engine_ = make_engine(model_, options_, windows);
    return *engine_;
  }
  const EngineModel model_;
  const EngineOptions options_;
  const std::shared_ptr<Decoder> decoder_;  // each model has its own units
  const double temperature_;
  std::mutex mutex_;
  std::unique_ptr<Engine> engine_;
};

namespace {

using Members = std::vector<std::shared_ptr<EnsembleMember>>;

/// The engine's options: samples of dropout need the network's own operations.
EngineOptions engine_of(const PredictorOptions& options) {
  EngineOptions engine = options.engine;
  if (options.tta.dropout_samples == 0) return engine;
  if ((engine.backend != "auto" && engine.backend != "eager") || engine.quantization != "none") {
    throw ConfigError(
        "tta.dropout_samples={}: performance.backend={}, performance.quantization={} have no "
        "dropout; expected eager (or auto) and none",
        options.tta.dropout_samples,
        engine.backend,
        engine.quantization);
  }
  engine.backend = "eager";
  return engine;
}

/// Whether the last layer comes after the windows' sums: it is linear, as is all that is between.
bool sums_features(const std::vector<LoadedModel>& models,
                   const PredictorOptions& options,
                   const Decoder& decoder,
                   const std::string& form) {
  return models.size() == 1 && models[0].features && contains(decoder.forms(), "probability") &&
         form != "variance" && options.tta.average == "logits" &&
         options.tta.dropout_samples == 0 && !options.foreground &&
         temperature_of(models[0], options.temperature) == 1;
}

Members members_of(const std::vector<LoadedModel>& models,
                   bool makes_features,
                   const EngineOptions& options,
                   c10::Device device,
                   double temperature) {
  Members members;
  for (const LoadedModel& one : models) {
    members.push_back(std::make_shared<EnsembleMember>(
        EngineModel{makes_features ? one.features : one.forward,
                    device,
                    one.fingerprint + (makes_features ? " features" : ""),
                    {},
                    one.torchscript,
                    "engine",
                    one.onnx},
        options,
        decoder_of(one.config.at("task")),
        temperature_of(one, temperature)));
  }
  return members;
}

/// Measures a pass over a small window.
ModelCost cost_of(const LoadedModel& model, const Network& pass, c10::Device device) {
  const bool is_fixed = !model.fixed_window.empty();
  for (int64_t least = 31;; least *= 2) {  // an exported network may say a larger one
    std::vector<int64_t> shape{1, model.in_channels};
    for (const int64_t side : is_fixed ? model.fixed_window : model.divisor)
      shape.push_back(is_fixed ? side : (least / side + 2) * side);
    try {
      return measure_cost(pass, at::zeros(shape, at::device(device)));
    } catch (const DataError&) {
      if (is_fixed || least > 400) throw;
    }
  }
}

void expect_logits(const Decoder& decoder) {
  const std::vector<std::string> forms = decoder.forms();
  if (contains(forms, "probability")) return;
  throw ConfigError(
      "predict.temperature: it is for probabilities of classes and masks, which this model does "
      "not give; expected 1");
}

std::optional<ForegroundRule> checked_foreground(const std::optional<ForegroundRule>& rule,
                                                 const Decoder& decoder) {
  if (!rule || !decoder.background(1).empty()) return rule;
  throw ConfigError(
      "predict.skip_empty: this model's values have no background, which windows that are left out "
      "could get; expected null");
}

void expect_no_turns(const TtaOptions& tta, const Decoder& decoder) {
  if (tta.is_plain() || decoder.turns_with_image()) return;
  throw ConfigError(
      "tta: this model's values are directions and distances, which have no mean over turned "
      "images; expected no mirror_axes, rotate90 and scales");
}

void expect_device(const char* key, const std::optional<std::string>& asked, c10::Device device) {
  if (!asked) return;
  const c10::Device wanted(*asked);
  const bool is_of_sums = std::string(key) == "device";  // they may be elsewhere
  const auto number = [](c10::Device one) { return one.has_index() ? int{one.index()} : 0; };
  if (wanted.type() != device.type()) {
    if (device::is_accelerator(device) && is_of_sums) return;
  } else if (is_of_sums || !wanted.has_index() || number(wanted) == number(device)) {
    return;
  }
  const std::string place = device.is_cpu()                  ? "the CPU: expected cpu"
                            : wanted.type() != device.type() ? "the GPU: expected cuda"
                                                             : device.str() + ": expected cuda";
  throw ConfigError("inference_args.{}: {}, but the model is on {}", key, *asked, place);
}

}  // namespace

WindowedModel::WindowedModel(const std::vector<LoadedModel>& models,
                             const PredictorOptions& options)
    : device(device::choose_device(options.accelerator)),
      model(mean_of(models)),
      decoder(decoder_of(model.config.at("task"))),
      form(decoder->form_of(options.form, "predict.save")),
      finish(decoder->finish(form, options.threshold)),
      steps(decoder->steps(form)),
      x_key(model.config.get<std::string>("task.x_key")),
      y_key(model.config.get<std::string>("task.y_key", "")),  // a task may have no target
      transforms(transforms_of(model.config, options.inference_args),
                 options.with_target ? "" : y_key),
      sums_features_(sums_features(models, options, *decoder, form)),
      members_(members_of(models, sums_features_, engine_of(options), device, options.temperature)),
      budget_(options.budget),
      foreground_(checked_foreground(options.foreground, *decoder)) {
  expect_engine(options.engine, device);
  if (options.temperature != 1) expect_logits(*decoder);
  expect_no_turns(options.tta, *decoder);
  if (options.original_grid) transforms.track_places();
  transforms.expect_channels(model.in_channels);
  model.place(device, device::uses_tensor_cores(options.engine.precision, device));
  if (sums_features_) std::tie(finish.weight, finish.bias) = model.last_layer();
  const int64_t samples = options.tta.dropout_samples;
  std::vector<std::vector<Forward>> runs(models.back().part + 1);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto& member = members_[i];
    std::vector<Forward>& own = runs[models[i].part];
    if (own.empty())
      parts_.push_back(
          {{}, window_options(models[i].config, options.inference_args), models[i].out_channels});
    if (samples == 0)
      own.push_back([member](const at::Tensor& windows) { return member->run(windows); });
    for (int64_t s = 0; s < samples; ++s)
      own.push_back([=](const at::Tensor& windows) { return member->sample(windows, s); });
  }
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].forward = averaged(
        std::move(runs[p]),
        options.tta,
        model.divisor,
        decoder->gives_labels() && decoder->finish("mask", 0.5).kind == ops::Finish::Kind::argmax,
        form == "variance");
  }
  const c10::InferenceMode inference_mode;
  const auto first = [&](const at::Tensor& windows) {
    if (samples == 0) return (sums_features_ ? model.features : model.forward)(windows).at(0);
    const nn::SampleDropout dropping(0);
    const at::Tensor output = model.forward(windows).at(0);
    if (dropping.has_dropped()) return output;
    throw ConfigError(
        "tta.dropout_samples={}: the model has no dropout; expected 0, or a model trained with "
        "some (model.dropout)",
        samples);
  };
  const Node* at_once = options.inference_args.find_direct("sw_batch_size");
  if (const std::vector<int64_t> grid = decoder->grid(); !grid.empty()) {
    for (Part& part : parts_) part.windows.unit = model.fixed_window.empty() ? model.divisor : grid;
  }
  planner_ = {parts_.front().windows,
              model.fixed_window.empty() && windows_grow(options.inference_args, model.config),
              budget_ && (at_once == nullptr || at_once->is_null()),
              cost_of(model, first, device),
              model.divisor,
              &finish,
              model.in_channels};
  expect_device("sw_device", planner_.options.sw_device, device);
  expect_device("device", planner_.options.device, device);
}

WindowedModel::WindowedModel(const WindowedModel& other, const std::string& form, double threshold)
    : device(other.device),
      model(other.model),
      decoder(other.decoder),
      form(decoder->form_of(form, "predict.save")),
      finish(decoder->finish(this->form, threshold)),
      steps(decoder->steps(this->form)),
      x_key(other.x_key),
      y_key(other.y_key),
      transforms(other.transforms),
      sums_features_(other.sums_features_),
      members_(other.members_),
      parts_(other.parts_),
      planner_(other.planner_),
      budget_(other.budget_),
      foreground_(other.foreground_) {
  if ((this->form == "variance") != (other.form == "variance")) {
    throw ConfigError("predict.save={}: the model was prepared for {}, expected {}",
                      this->form,
                      other.form,
                      other.form == "variance" ? "variance" : "another form");
  }
  finish.weight = other.finish.weight;
  finish.bias = other.finish.bias;
  planner_.by_slabs = &finish;
}

int64_t WindowedModel::image_dims(int64_t planes) const {
  return planner_.options.spatial_dim || planes > 1 ? 3 : model.spatial_dims;
}

std::optional<int64_t> WindowedModel::plane_axis(std::size_t dims) const {
  if (!planner_.options.spatial_dim && dims == 3 && model.spatial_dims == 2) return 0;
  return planner_.options.spatial_dim;
}

std::string WindowedModel::engine() const {
  return members_.front()->text();
}

void WindowedModel::check(const ModelInput& input) const {
  if (input.shape.at(0) == model.in_channels) return;
  const bool has_pages = input.shape.size() == 4 && input.shape[1] == model.in_channels;
  throw DataError("{}: {} channels{}, the model expects {}{}",
                  input.sample.id,
                  input.shape[0],
                  has_pages ? fmt::format(" of {} planes", input.shape[1]) : "",
                  model.in_channels,
                  has_pages ? "; predict takes planes as channels with data.axes=CYX" : "");
}

SlidingWindowOptions WindowedModel::windows(const std::string& id,
                                            const std::vector<int64_t>& size,
                                            const std::string& folder,
                                            int64_t held_bytes) const {
  return windows_of(parts_.front(), id, size, folder, held_bytes);
}

SlidingWindowOptions WindowedModel::windows_of(const Part& part,
                                               const std::string& id,
                                               const std::vector<int64_t>& size,
                                               const std::string& folder,
                                               int64_t held_bytes) const {
  FreeMemory free = free_memory_on(device);
  if (budget_ && *budget_ < free.bytes) free = {*budget_, "predict.max_memory_mb", true};
  WindowPlanner planner = planner_;
  planner.options = part.windows;
  planner.options.spatial_dim = plane_axis(size.size());
  SlidingWindowOptions windows =
      planner.plan(id, size, held_bytes, free, device.is_cpu() ? folder : "");
  if (!windows.sw_device) windows.sw_device = device.str();
  if (!windows.device) windows.device = device.str();
  if (model.network != nullptr) windows.channels_last = model.network->channels_last;
  return windows;
}

SlidingWindowOptions WindowedModel::windows(const ModelInput& input, int64_t work_bytes) const {
  constexpr int64_t kOnTheirWay = 1 << 28;  // bytes of scores that go to the file's voxels
  if (finish_of(input).kind != finish.kind) work_bytes += kOnTheirWay;
  const std::vector<int64_t> size{input.shape.begin() + 1, input.shape.end()};
  return windows(input.sample.id, size, input.sample.folder, work_bytes);
}

WindowedModel::Plan WindowedModel::plan(const std::vector<int64_t>& size,
                                        const SlidingWindowOptions& windows,
                                        bool is_by_rows) const {
  const WindowMemory memory = memory_of(size, model.in_channels, windows, planner_.cost, finish);
  const WindowLayout layout = layout_windows(size, windows);
  double image = is_by_rows ? 0 : 4.0 * static_cast<double>(model.in_channels);
  for (const int64_t side : size) image *= static_cast<double>(side);
  const auto parts = std::ssize(parts_);
  Plan plan{memory.windows * parts, memory.by_slabs + image * static_cast<double>(parts), ""};
  plan.text = fmt::format("{} voxels{}{}: {}{} windows of {}, {} at once, {}",
                          fmt::join(size, "x"),
                          layout.slice_dim >= 0 ? ", plane by plane" : "",
                          is_by_rows ? ", by rows" : "",
                          parts > 1 ? fmt::format("{} models of ", parts) : "",
                          memory.windows,
                          fmt::join(layout.roi, "x"),
                          std::min(windows.sw_batch_size, memory.windows),
                          format_bytes(plan.bytes));
  return plan;
}

int64_t by_rows_from() {
  constexpr int64_t kUsual = int64_t{256} << 20;
  return std::min(kUsual, available_memory().bytes / 8);
}

}  // namespace cytra::inference
