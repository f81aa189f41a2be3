// The Predictor: what it is made of, and each way to ask it.
#include "inference/predictor.h"

#include <algorithm>
#include <mutex>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config/schema.h"
#include "data/image_tensor.h"
#include "data/transforms/load_image.h"
#include "inference/adaptive_batch.h"
#include "inference/device_rows.h"
#include "inference/result.h"
#include "inference/windows.h"
#include "nn/model.h"
#include "ops/windows/sums.h"
#include "perf/device.h"
#include "perf/device_memory.h"
#include "perf/device_precision.h"

namespace cytra::inference {
namespace {

using config::Node;

/// Whether `changes` ask for windows larger than those of the training; not where the training gave
/// them a size of their own.
bool windows_grow(const Node& changes, const Node& config) {
  const Node* asked = changes.find_direct("roi_size");
  if (asked == nullptr || !WindowChanges::is_auto(*asked)) return false;
  const Node* patch = config.find("patch_shape");
  const Node* roi = config.find("task.inference_args.roi_size");
  return patch == nullptr || roi == nullptr || config::to_json(*patch) == config::to_json(*roi);
}

/// The checkpoint's windows with `changes`.
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

/// data.transforms; where a 2D model goes through a stack slice by slice, images are loaded as
/// such.
Node transforms_of(const Node& config, const Node& changes) {
  Node transforms = config.at("data.transforms");
  const auto slices = [](const Node* dim) { return dim != nullptr && !dim->is_null(); };
  if (!slices(changes.find_direct("spatial_dim")) &&
      !slices(config.find("task.inference_args.spatial_dim")))
    return transforms;
  for (const char* split : {"valid", "predict"}) {
    if (Node* list = transforms.find_direct(split))
      data::set_load_option(*list, "spatial_dims", Node::make_integer(3));
  }
  return transforms;
}

/// A model and its engine, which is made of the first windows that come.
class Member {
 public:
  Member(EngineModel model, const EngineOptions& options, std::shared_ptr<Decoder> decoder)
      : model_(std::move(model)), options_(options), decoder_(std::move(decoder)) {}
  std::vector<Tensor> run(const Tensor& windows) {
    std::vector<Tensor> outputs = engine_for(windows).run(windows);
    outputs.at(0) = decoder_->in_units(outputs[0]);
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
  const std::shared_ptr<Decoder> decoder_;  // each model has units of its own
  std::mutex mutex_;
  std::unique_ptr<Engine> engine_;
};

/// A result into the caller's image.
class RowsToWriter final : public ResultOutput {
 public:
  explicit RowsToWriter(io::ImageWriter& writer) : writer_(writer) {}
  void take(const ImageResult& /*result*/, const at::Tensor& rows) override {
    writer_.write(data::to_image(rows, writer_.info().dtype, {}));
  }
  void finish(ResultFiles& /*files*/) override { writer_.finish(); }

 private:
  io::ImageWriter& writer_;
};

}  // namespace

bool WindowChanges::is_auto(const Node& roi) {
  return roi.kind == config::Kind::string && (roi.string == "AUTO" || roi.string == "auto");
}

void WindowChanges::check() {
  SlidingWindowOptions::check();
  if (given_roi.is_null() || is_auto(given_roi)) return;
  if (given_roi.kind != config::Kind::list) given_roi.as<int64_t>();
  for (const Node& side : given_roi.list) {
    if (!side.is_null()) side.as<int64_t>();
  }
}

struct Predictor::State {
  State(std::vector<LoadedModel> models, const PredictorOptions& options)
      : device(perf::choose_device(options.accelerator)),
        members(members_of(models, options.engine, device)),
        model(mean_of(std::move(models))),
        decoder(decoder_of(model.config.at("task"))),
        form(decoder->form_of(options.form, "predict.save")),
        finish(decoder->finish(form, options.threshold)),
        steps(decoder->steps(form)),
        x_key(model.config.get<std::string>("task.x_key")),
        y_key(model.config.get<std::string>("task.y_key", "")),  // a task may have no target
        transforms(transforms_of(model.config, options.inference_args),
                   options.with_target ? "" : y_key) {
    expect_engine(options.engine, device);
    expect_no_turns(options.tta);
    if (options.tracks_places) transforms.track_places();
    model.place(device, perf::uses_tensor_cores(options.engine.precision, device));
    std::vector<Forward> runs;
    for (const auto& member : members)
      runs.push_back([member](const at::Tensor& windows) { return member->run(windows); });
    forward = averaged(
        std::move(runs),
        options.tta,
        model.divisor,
        decoder->gives_labels() && decoder->finish("mask", 0.5).kind == ops::Finish::Kind::argmax);
    std::vector<int64_t> shape{1, model.in_channels};
    for (const int64_t side : model.fixed_window.empty() ? model.divisor : model.fixed_window)
      shape.push_back(model.fixed_window.empty() ? (31 / side + 2) * side : side);
    const c10::InferenceMode inference_mode;
    const auto first = [&](const at::Tensor& windows) { return model.forward(windows).at(0); };
    planner = {window_options(model.config, options.inference_args),
               model.fixed_window.empty() && windows_grow(options.inference_args, model.config),
               measure_cost(first, at::zeros(shape, at::device(device))),
               model.divisor,
               &finish,
               model.in_channels};
    expect_device("sw_device", planner.options.sw_device);
    expect_device("device", planner.options.device);
  }

  void expect_no_turns(const TtaOptions& tta) const {
    const bool is_plain =
        tta.mirror_axes.empty() && !tta.rotate90 && tta.scales == TtaOptions().scales;
    if (is_plain || decoder->turns_with_image()) return;
    throw ConfigError(
        "tta: this model's values are directions and distances, which have no mean over turned "
        "images; expected no mirror_axes, rotate90 and scales");
  }
  /// All rows of an image as what is written of them.
  at::Tensor stepped(const at::Tensor& values, const io::Geometry& geometry) const {
    if (steps.empty()) return values;
    Result result{values, false, geometry};
    apply_all(steps, result);
    return result.values;
  }
  void expect_device(const char* key, const std::optional<std::string>& asked) const {
    if (!asked || c10::Device(*asked).type() == device.type()) return;
    if (device.is_cuda() && std::string(key) == "device") return;  // sums may be on the CPU
    throw ConfigError(fmt::format("inference_args.{}: {}, but the model is on the {}",
                                  key,
                                  *asked,
                                  device.is_cpu() ? "CPU: expected cpu" : "GPU: expected cuda"));
  }
  /// 3 for a 2D model that goes through a stack slice by slice.
  int64_t image_dims() const { return planner.options.spatial_dim ? 3 : model.spatial_dims; }
  SlidingWindowOptions placed(SlidingWindowOptions windows) const {
    if (!windows.sw_device) windows.sw_device = device.str();
    if (!windows.device) windows.device = device.str();
    if (model.network != nullptr) windows.channels_last = model.network->channels_last;
    return windows;
  }

  using Members = std::vector<std::shared_ptr<Member>>;
  static Members members_of(const std::vector<LoadedModel>& models,
                            const EngineOptions& options,
                            c10::Device device) {
    Members members;
    for (const LoadedModel& one : models) {
      members.push_back(std::make_shared<Member>(
          EngineModel{one.forward, device, one.fingerprint, {}, one.torchscript},
          options,
          decoder_of(one.config.at("task"))));
    }
    return members;
  }

  c10::Device device;
  Members members;
  LoadedModel model;  // the mean of all
  Forward forward;    // by the engines, with test-time augmentation
  std::shared_ptr<Decoder> decoder;
  std::string form;
  ops::Finish finish;
  PostprocessSteps steps;
  std::string x_key, y_key;
  InputTransforms transforms;
  WindowPlanner planner;
  AdaptiveBatch adaptive;
};

Predictor Predictor::load(const std::string& checkpoint, const PredictorOptions& options) {
  CheckpointOptions named;
  named.ckpt_path = {checkpoint};
  return {load_models(named), options};
}

Predictor::Predictor(std::vector<LoadedModel> models, const PredictorOptions& options)
    : state_(std::make_shared<State>(std::move(models), options)) {}

Tensor Predictor::predict(const Tensor& image) const {
  const c10::InferenceMode inference_mode;
  const int64_t dims = state_->image_dims();
  if (image.dim() != dims + 1 && image.dim() != dims + 2) {
    throw DataError(fmt::format("an image of ({}), expected (C,{}) or (N,C,{})",
                                fmt::join(image.sizes(), ","),
                                dims == 2 ? "H,W" : "D,H,W",
                                dims == 2 ? "H,W" : "D,H,W"));
  }
  if (image.dim() == dims + 2) {
    std::vector<at::Tensor> results;
    for (const at::Tensor& one : image.unbind(0)) results.push_back(predict(one));
    return at::stack(results);
  }
  ModelInput input(image.to(at::kFloat));
  input.sample.id = "the image";
  check(input);
  const SlidingWindowOptions chosen = windows("the image", image.sizes().slice(1).vec());
  std::vector<at::Tensor> parts;
  run(input, chosen, [&](int64_t, const std::vector<at::Tensor>& rows) {
    parts.push_back(rows[0].cpu().clone());
  });
  return state_->stepped(at::cat(parts, 1), {});
}

void Predictor::predict(const io::ImageReader& image, io::ImageWriter& output) const {
  const c10::InferenceMode inference_mode;
  const std::string id = "the image";
  data::Sample sample;
  sample.id = id;
  sample.geometries[state_->x_key] = image.info().geometry;
  sample.unread[state_->x_key] = {
      std::shared_ptr<const io::ImageReader>(&image, [](const io::ImageReader*) {}),
      io::within({}, image.info().shape, id),
      state_->image_dims(),
      id};
  const auto input = std::make_shared<const ModelInput>(
      state_->transforms.apply(std::move(sample), state_->x_key, {}, by_rows_from()));
  check(*input);
  ImageResult::Outputs outputs;
  outputs.push_back(std::make_unique<RowsToWriter>(output));
  const ResultOptions options{state_->steps};
  ImageResult result(*this, options, input, std::move(outputs));
  run(*input,
      windows(id, {input->shape.begin() + 1, input->shape.end()}),
      [&](int64_t, const std::vector<at::Tensor>& rows) { result.take(rows[0]); });
  result.finish();
}

io::ImageInfo Predictor::describe(const io::ImageInfo& image) const {
  io::ImageInfo info = image;
  const bool are_objects = !state_->steps.empty();
  info.dtype = are_objects ? io::Dtype::u32 : dtype_of(state_->finish);
  info.shape[0] = are_objects ? 1 : state_->finish.channels(state_->model.out_channels);
  info.scenes = info.levels = info.timepoints = 1;
  info.channel_names.clear();
  for (int64_t k = 0; k < info.shape[0]; ++k) {
    info.channel_names.push_back(info.shape[0] == 1 && state_->decoder->is_labels(state_->form)
                                     ? state_->y_key
                                     : fmt::format("{} {} {}", state_->y_key, state_->form, k));
  }
  return info;
}

void Predictor::check(const ModelInput& input) const {
  if (input.shape.at(0) == state_->model.in_channels) return;
  throw DataError(fmt::format("{}: {} channels, the model expects {}",
                              input.sample.id,
                              input.shape[0],
                              state_->model.in_channels));
}

SlidingWindowOptions Predictor::windows(const std::string& id,
                                        const std::vector<int64_t>& size) const {
  return state_->planner.plan(id, size, 0, room_on(state_->device));
}

Predictor::Plan Predictor::plan(const std::vector<int64_t>& size,
                                const SlidingWindowOptions& windows,
                                bool is_by_rows) const {
  const WindowMemory memory =
      memory_of(size, state_->model.in_channels, windows, state_->planner.cost, state_->finish);
  const WindowLayout layout = layout_windows(size, windows);
  double image = is_by_rows ? 0 : 4.0 * static_cast<double>(state_->model.in_channels);
  for (const int64_t side : size) image *= static_cast<double>(side);
  Plan plan{memory.windows, memory.by_slabs + image, ""};
  plan.text = fmt::format("{} voxels{}: {} windows of {}, {}",
                          fmt::join(size, "x"),
                          is_by_rows ? ", by rows" : "",
                          plan.windows,
                          fmt::join(layout.roi, "x"),
                          format_bytes(plan.bytes));
  return plan;
}

std::vector<Tensor> Predictor::forward(const Tensor& windows) const {
  return state_->adaptive(state_->forward, windows);
}

void Predictor::run(const ModelInput& input,
                    const SlidingWindowOptions& windows,
                    const RowSink& sink,
                    const WindowProgress& progress,
                    RowRange range) const {
  const RowSource source{input.shape,
                         [&](int64_t first, int64_t count) { return input.rows(first, count); }};
  const int64_t bad = predict_slabs(
      source,
      [this](const at::Tensor& batch) { return forward(batch); },
      state_->placed(windows),
      state_->finish,
      sink,
      progress,
      range);
  if (bad == 0) return;
  throw DataError(fmt::format(
      "{}: {} of the values that the model makes of it are NaN or infinite", input.sample.id, bad));
}

void Predictor::run(const std::vector<const ModelInput*>& inputs,
                    const SlidingWindowOptions& windows,
                    const std::function<void(std::size_t image, const Tensor& values)>& sink,
                    const WindowProgress& progress) const {
  std::vector<at::Tensor> images;
  for (const ModelInput* input : inputs) images.push_back(input->rows(0, input->shape[1]));
  const at::Tensor logits =
      sliding_window(to_device(at::stack(images), state_->device),
                     Forward([this](const at::Tensor& batch) { return forward(batch); }),
                     state_->placed(windows),
                     progress)
          .at(0);
  const std::vector<bool> fine = are_finite(logits);
  const std::vector<at::Tensor> each = logits.split(1);
  for (std::size_t i = 0; i < fine.size(); ++i)
    sink(i, fine[i] ? ops::finish(each[i], {}, state_->finish)[0] : at::Tensor());
}

std::string Predictor::engine() const {
  return state_->members.front()->text();
}

const LoadedModel& Predictor::model() const {
  return state_->model;
}
const Decoder& Predictor::decoder() const {
  return *state_->decoder;
}
const PostprocessSteps& Predictor::steps() const {
  return state_->steps;
}
const ops::Finish& Predictor::finish() const {
  return state_->finish;
}
const std::string& Predictor::form() const {
  return state_->form;
}
c10::Device Predictor::device() const {
  return state_->device;
}
const InputTransforms& Predictor::transforms() const {
  return state_->transforms;
}
std::string Predictor::x_key() const {
  return state_->x_key;
}
std::string Predictor::y_key() const {
  return state_->y_key;
}

int64_t by_rows_from() {
  constexpr int64_t kUsual = int64_t{256} << 20;
  return std::min(kUsual, available_memory().bytes / 8);
}

}  // namespace cytra::inference
