// The work of `predict`: checkpoint (weights and configuration) -> images -> sliding window ->
// masks and overlays.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/entry.h"
#include "app/predict_books.h"
#include "app/predict_inputs.h"
#include "app/predict_output.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/image_tensor.h"
#include "inference/averages.h"
#include "inference/overlay.h"
#include "inference/sliding_window.h"
#include "inference/trained_model.h"
#include "inference/window_plan.h"
#include "perf/device.h"
#include "tasks/class_labels.h"
#include "training/trainer_options.h"

namespace cytra::app {
namespace {

using config::Node;

/// `inference_args` of predict: changes to the checkpoint's.
struct WindowOptions : inference::SlidingWindowOptions {
  Node given_roi;
  template <class V>
  void visit(V& v) {
    v("roi_size",
      given_roi,
      "AUTO: twice the training patch where memory allows, no larger than the image; else voxels "
      "of "
      "the window, per spatial dimension, one number for all; <= 0: the image's size");
    visit_others(v);
  }
  static bool is_auto(const Node& roi) {
    return roi.kind == config::Kind::string && (roi.string == "AUTO" || roi.string == "auto");
  }
  void check() {
    SlidingWindowOptions::check();
    if (given_roi.is_null() || is_auto(given_roi)) return;
    if (given_roi.kind != config::Kind::list) given_roi.as<int64_t>();
    for (const Node& side : given_roi.list) side.as<int64_t>();
  }
};

struct PredictTrainerOptions : perf::DeviceOptions {
  Node limit_predict_batches;
  training::Amount limit;
  template <class V>
  void visit(V& v) {
    DeviceOptions::visit(v);
    v("limit_predict_batches",
      limit_predict_batches,
      "of the images: the first 10, or 0.1 of them");
  }
  void check() { limit = training::amount_of(limit_predict_batches, limit); }
};

/// All that `predict` takes.
struct PredictConfig : CommonConfig {
  inference::CheckpointOptions checkpoint;
  InputOptions data;
  PredictOptions predict;
  Node inference_args;
  PredictTrainerOptions trainer;
  template <class V>
  void visit(V& v) {
    v("checkpoint", checkpoint, "the trained model");
    v("data", data, "what to predict");
    v("predict", predict, "what to write");
    v("inference_args",
      inference_args,
      "sliding window; null: as the checkpoint says",
      config::changes<WindowOptions>());
    v("trainer", trainer, "where to compute");
    CommonConfig::visit(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "use data.with_target=true");
  }
};
const bool predict_is_added = add_program<PredictConfig>("predict");

/// Whether `changes` ask for windows larger than those of the training; not where the training gave
/// them a size of their own.
bool grows(const Node& changes, const Node& config) {
  const Node* asked = changes.find_direct("roi_size");
  if (asked == nullptr || !WindowOptions::is_auto(*asked)) return false;
  const Node* patch = config.find("patch_shape");
  const Node* roi = config.find("task.inference_args.roi_size");
  return patch == nullptr || roi == nullptr || config::to_json(*patch) == config::to_json(*roi);
}

/// The checkpoint's windows with `changes`. Throws: ConfigError.
inference::SlidingWindowOptions window_options(const Node& config, const Node& changes) {
  Node window = config.at("task.inference_args");
  for (const auto& [key, value] : changes.map) {
    const bool is_auto = key == "roi_size" && WindowOptions::is_auto(value);
    if (!value.is_null() && !is_auto) window.set(key, value);
  }
  auto options = config::parse<inference::SlidingWindowOptions>(window);
  options.progress = false;
  return options;
}

/// A model, and what its checkpoint says about how it is to be used, with `changes` to its windows.
struct Trained : inference::LoadedModel {
  Trained(const inference::CheckpointOptions& options, const Node& changes)
      : LoadedModel(inference::mean_of(inference::load_models(options))),
        x_key(config.get<std::string>("task.x_key")),
        y_key(config.get<std::string>("task.y_key")),
        labels(tasks::class_labels_of(config.at("task"))),
        window(window_options(config, changes)),
        window_grows(grows(changes, config)) {}
  inference::Network first_output() const {
    return [run = forward](const at::Tensor& windows) { return run(windows).at(0); };
  }

  std::string x_key, y_key;
  tasks::ClassLabels labels;
  inference::SlidingWindowOptions window;
  bool window_grows;
};

/// For a model on its device, whose passes are measured.
inference::WindowPlanner planner_of(const Trained& trained, c10::Device device) {
  std::vector<int64_t> shape{1, trained.in_channels};
  for (const int64_t side : trained.fixed_window.empty() ? trained.divisor : trained.fixed_window)
    shape.push_back(trained.fixed_window.empty() ? (31 / side + 2) * side : side);
  const at::Tensor window = at::zeros(shape, at::device(device));
  return {trained.window,
          trained.window_grows,
          inference::measure_cost(trained.first_output(), window),
          trained.divisor};
}

io::Image to_output(const at::Tensor& logits,
                    const at::Tensor& mask,
                    const tasks::ClassLabels& labels,
                    const std::string& save,
                    const data::Sample& sample,
                    const std::string& name) {
  const at::Tensor values = save == "mask"          ? mask
                            : save == "probability" ? labels.probabilities(logits)
                                                    : logits;
  io::Image image =
      data::to_image(values[0], save == "mask" ? labels.dtype() : io::Dtype::f32, sample.geometry);
  if (save == "mask" && values.size(1) == 1) {
    image.channel_names = {name};
    return image;
  }
  for (int64_t k = 0; k < values.size(1); ++k)
    image.channel_names.push_back(fmt::format("{} {} {}", name, save, k));
  return image;
}

/// Predicts one image after the other.
class Predictor {
 public:
  Predictor(const PredictConfig& config,
            const Trained& trained,
            c10::Device device,
            std::string folder,
            Books& books)
      : config_(config),
        trained_(trained),
        device_(device),
        folder_(std::move(folder)),
        books_(books),
        transforms_(trained.config.at("data.transforms"),
                    config.data.scores() ? "" : trained.y_key),
        planner_(planner_of(trained, device)) {}

  /// All frames of an input. `progress` follows the windows.
  void predict(const data::Sample& sample, Progress& progress) {
    Input input;
    if (!attempt(sample.id, Part::reading, [&] { input = open(sample); })) return;
    {
      const std::lock_guard lock(books_.mutex);
      books_.images += static_cast<int64_t>(input.frames.size()) - 1;
    }
    for (const data::Sample& frame : input.frames) {
      Prediction made{frame, {}, {}, {}};
      if (attempt(frame.id, Part::reading, [&] { load(made); }) &&
          attempt(frame.id, Part::computing, [&] { compute(made, progress); }))
        attempt(frame.id, Part::writing, [&] { write(made); });
    }
  }
  const metrics::Dice& dice() const { return dice_; }

 private:
  struct Prediction {
    data::Sample sample;
    at::Tensor shown;  // for the overlay
    at::Tensor logits, mask;
  };
  enum class Part { reading, computing, writing };

  /// False when it failed: the image is left out then. Throws: what is no matter of this image (the
  /// device fails, the disk is full), everything with data.on_error=fail.
  template <class Work>
  bool attempt(const std::string& id, Part part, Work work) {
    try {
      guarded([&] {
        work();
        return 0;
      });
      return true;
    } catch (const std::exception& error) {
      const bool is_io = dynamic_cast<const IoError*>(&error) != nullptr;
      const bool is_config = dynamic_cast<const ConfigError*>(&error) != nullptr;
      if (config_.data.on_error == "fail" || (part != Part::reading && is_io) ||
          (part == Part::writing && is_config))
        throw;
      books_.leave_out(id, error);
      return false;
    }
  }

  Input open(const data::Sample& sample) const {
    Input input = open_input(sample, trained_.x_key, transforms_);
    const AvailableMemory memory = available_memory();
    if (input.bytes <= memory.bytes) return input;
    throw MemoryError(
        fmt::format("{}: loading it takes {}, {} are left ({}); smaller images, or "
                    "more memory, are needed",
                    sample.id,
                    format_bytes(static_cast<double>(input.bytes)),
                    format_bytes(static_cast<double>(memory.bytes)),
                    memory.limit));
  }

  void load(Prediction& made) const {
    made.shown = transforms_.apply(made.sample, trained_.x_key, config_.data.spacing_um);
    const at::Tensor& image = made.sample.at(trained_.x_key);
    if (image.size(0) == trained_.in_channels) return;
    throw DataError(fmt::format("{}: {} channels, the model expects {}",
                                made.sample.id,
                                image.size(0),
                                trained_.in_channels));
  }

  void compute(Prediction& made, Progress& progress) {
    const at::Tensor image = made.sample.at(trained_.x_key).unsqueeze(0);  // (1,C,[D,]H,W)
    const inference::SlidingWindowOptions window =
        planner_.plan(made.sample.id,
                      image.sizes().slice(2).vec(),
                      device_.is_cpu() ? 0 : static_cast<int64_t>(image.nbytes()),
                      inference::room_on(device_));
    tell(window.roi_size);
    const std::string label = made.sample.id + ", windows";
    progress.show_part(label, 1, -1);  // begins: their rate and ETA count from here
    made.logits = inference::sliding_window(
                      image.to(device_),
                      trained_.first_output(),
                      window,
                      [&](int64_t done, int64_t n) { progress.show_part(label, done, n); })
                      .cpu();
    expect_finite(made.logits, made.sample.id);
    // (1,K,...), of a small type: what follows holds several copies.
    made.mask = trained_.labels.predict(made.logits, config_.predict.threshold)
                    .to(trained_.labels.dtype() == io::Dtype::u8 ? at::kByte : at::kInt);
  }

  void write(Prediction& made) {
    const auto found = made.sample.sources.find(trained_.x_key);
    const data::Source source =  // transforms may drop it
        found == made.sample.sources.end() ? data::Source() : found->second;
    const tasks::ClassLabels& labels = trained_.labels;
    at::Tensor truth;
    if (config_.data.scores())
      truth = labels.target_of(made.sample, trained_.y_key, trained_.x_key).unsqueeze(0);
    const io::Image image = to_output(
        made.logits, made.mask, labels, config_.predict.save, made.sample, trained_.y_key);
    made.logits.reset();
    const std::lock_guard lock(books_.mutex);
    if (truth.defined()) dice_.update(labels.one_hot(made.mask), labels.one_hot(truth));
    const std::string stem = folder_ + "/" + names_.next(source);
    books_.results.add("prediction", write_prediction(stem, source.path, image, config_.predict));
    if (config_.predict.overlay) {
      io::write_png(stem + "_overlay.png",
                    inference::draw_overlay(made.shown, labels.flattened(made.mask)[0][0]));
      books_.results.add("overlay", stem + "_overlay.png");
    }
    ++books_.done;
  }

  /// Of the first image; of the others with -v.
  void tell(const std::vector<int64_t>& roi) {
    if (!planner_.grows) return;
    log::write(std::exchange(told_, true) ? log::Level::debug : log::Level::info,
               fmt::format("inference_args.roi_size=AUTO: windows of {} (the training's: {})",
                           fmt::join(roi, "x"),
                           fmt::join(planner_.options.roi_size, "x")));
  }

  /// A mask would hide it: a comparison with NaN is false.
  static void expect_finite(const at::Tensor& logits, const std::string& id) {
    if (logits.sum().isfinite().item<bool>()) return;
    const int64_t bad = logits.isfinite().logical_not().sum().item<int64_t>();
    if (bad > 0) {
      throw DataError(
          fmt::format("{}: {} of {} values that the model makes of it are NaN or infinite",
                      id,
                      bad,
                      logits.numel()));
    }
  }

  const PredictConfig& config_;
  const Trained& trained_;
  c10::Device device_;
  std::string folder_;
  Books& books_;
  InputTransforms transforms_;
  inference::WindowPlanner planner_;
  bool told_ = false;
  metrics::Dice dice_ = trained_.labels.dice();
  OutputNames names_;
};

int predict(cli::Run run, const PredictConfig& config) {
  const auto begin = std::chrono::steady_clock::now();
  watch_signals();
  perf::prepare(config.performance);
  const c10::Device device = perf::choose_device(config.trainer.accelerator);
  const Trained trained(config.checkpoint, config.inference_args);
  Books books(run.json);
  std::vector<std::string> keys{trained.x_key};
  if (config.data.scores()) keys.push_back(trained.y_key);
  std::vector<data::Sample> inputs =
      list_inputs(config.data, keys, [&](const std::string& id, const std::exception& error) {
        books.leave_out(id, error);
        ++books.images;
      });
  if (!inputs.empty()) {
    inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
        static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  }
  books.images += static_cast<int64_t>(inputs.size());
  trained.place(device);
  const std::string folder = open_run_folder(run);
  perf::apply(config.performance, device);
  log::info("{}: {} images on {}", trained.path, books.images, perf::describe(device));

  const c10::InferenceMode inference_mode;
  Predictor predictor(config, trained, device, folder, books);
  const auto conclude = [&](int signal) {
    if (config.data.scores()) {
      for (const auto& [name, value] : trained.labels.scores(predictor.dice()))
        books.results.add(name, value);
      const std::string missing = trained.labels.what_is_missing(predictor.dice());
      if (!missing.empty()) log::warn("{}", missing);
    }
    books.results.add("output_dir", folder);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    log::write(signal == 0 ? log::Level::info : log::Level::warn,
               fmt::format("{}{} of {} images predicted in {}",
                           signal == 0 ? "" : "interrupted: ",
                           books.done,
                           books.images,
                           format_seconds(elapsed.count())));
    books.results.print();
  };
  {
    const EndOnSignal end_on_signal(books.mutex, conclude);
    Progress progress("predicting", static_cast<int64_t>(inputs.size()));
    int64_t done = 0;
    for (const data::Sample& sample : inputs) {
      predictor.predict(sample, progress);
      progress.update(++done);
    }
  }
  conclude(0);
  return books.code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_predict(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::predict);
}
