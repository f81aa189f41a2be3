// The work of `predict`: checkpoint (weights and configuration) -> images -> sliding window ->
// masks and overlays.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "app/trained.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/image_tensor.h"
#include "inference/overlay.h"
#include "inference/sliding_window.h"
#include "nn/model.h"
#include "perf/device.h"
#include "tasks/class_labels.h"
#include "training/trainer_options.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using config::Node;

struct PredictOptions {
  std::string save = "mask";
  double threshold = 0.5;
  bool overlay = true;
  template <class V>
  void visit(V& v) {
    v("save",
      save,
      "mask: class numbers, or a channel of 0 and 1 per mask; probability or logits: one float32 "
      "channel per class or mask",
      {"mask", "probability", "logits"});
    v("threshold", threshold, "of a mask's probability", 0, 1);
    v("overlay", overlay, "also write a PNG of the mask over the image");
  }
};

struct InputOptions {
  std::string path;
  bool with_target = false;
  std::vector<double> spacing_um;
  template <class V>
  void visit(V& v) {
    v("path", path, "an image, a folder of images, or a manifest (.csv, .tsv)", config::required);
    v("with_target", with_target, "the manifest has the target's column, too: report Dice");
    v("spacing_um",
      spacing_um,
      "voxel size in um, [z, y, x] or [y, x], for images that do not tell; null: the file's",
      0,
      1e9);
  }
  void check() const {
    if (spacing_um.size() > 3) throw ConfigError("spacing_um: expected [z, y, x] or [y, x]");
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
  TrainedOptions checkpoint;
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
      config::changes<inference::SlidingWindowOptions>());
    v("trainer", trainer, "where to compute");
    CommonConfig::visit(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "use data.with_target=true");
  }
};
const bool added = add_program<PredictConfig>("predict");

/// The inputs that data.path names: one image, a folder of images, or a manifest with the column
/// `key`.
std::vector<data::Sample> list_inputs(const std::string& path,
                                      const std::string& key,
                                      const std::vector<std::string>& extra) {
  std::error_code ignored;  // a name too long
  if (fs::is_directory(path, ignored)) return data::list_folder(path, key);
  if (!fs::exists(path, ignored))
    throw ConfigError(fmt::format("data.path: {}: no such image, folder or manifest", path));
  if (ends_with(path, ".csv") || ends_with(path, ".tsv")) {
    std::vector<std::string> columns{key};
    columns.insert(columns.end(), extra.begin(), extra.end());
    return data::read_manifest(path, columns);
  }
  data::Sample sample;
  sample.id = path;
  sample.sources[key].path = path;
  return {sample};
}

/// A name per input: its stem, scene and time point where a manifest chose them, and a number when
/// two inputs share it.
std::string output_stem(const data::Source& source, std::set<std::string>& taken) {
  std::string stem = fs::path(source.path).filename().string();
  for (const char* extension : {".png", ".tif", ".tiff", ".ome"}) {
    if (ends_with(stem, extension)) stem.resize(stem.size() - std::string(extension).size());
    if (ends_with(stem, ".ome")) stem.resize(stem.size() - 4);
  }
  if (source.selection.scene >= 0) stem += fmt::format("_s{}", source.selection.scene);
  if (source.selection.timepoint >= 0) stem += fmt::format("_t{}", source.selection.timepoint);
  std::string unique = stem;
  for (int number = 2; !taken.insert(unique).second; ++number)
    unique = fmt::format("{}_{}", stem, number);
  return unique;
}

/// What a checkpoint says about how its model is to be used.
struct Trained : TrainedModel {
  Node window;
  tasks::ClassLabels labels;
  std::string x_key, y_key;
};

Trained load_trained(const TrainedOptions& options, const Node& changes) {
  Trained trained{load_model(options), {}, {}, {}, {}};
  const Node& task = trained.config.at("task");
  trained.x_key = task.get<std::string>("x_key");
  trained.y_key = task.get<std::string>("y_key");
  trained.window = task.at("inference_args");
  trained.labels = tasks::class_labels_of(task);
  for (const auto& [key, value] : changes.map) {
    if (!value.is_null()) trained.window.set(key, value);
  }
  return trained;
}

/// Transforms of the checkpoint's predict list (or valid list), for the image alone or for image
/// and target.
data::Transforms input_transforms(const Trained& trained, bool with_target) {
  Node transforms = trained.config.at("data.transforms");
  const data::Split split = transforms.has("predict") && !transforms.at("predict").is_null()
                                ? data::Split::predict
                                : data::Split::valid;
  Node* list = transforms.find(data::name_of(split));
  if (list != nullptr && !with_target) {
    const auto is_target = [&](const Node& key) {
      return key.kind == config::Kind::string && key.string == trained.y_key;
    };
    const auto is_idle = [&](Node& transform) {  // nothing is left for it to work on
      Node* keys = transform.find("keys");
      if (keys == nullptr) return false;
      if (keys->kind != config::Kind::list) return is_target(*keys);
      keys->list.erase(std::remove_if(keys->list.begin(), keys->list.end(), is_target),
                       keys->list.end());
      return keys->list.empty();
    };
    list->list.erase(std::remove_if(list->list.begin(), list->list.end(), is_idle),
                     list->list.end());
  }
  const auto lists = config::parse<data::SplitTransforms>(transforms);
  data::Transforms result = data::make_transforms(lists, split);
  if (result.empty()) data::throw_no_transforms(lists, split);
  return result;
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

/// Predicts one image after the other and keeps the books.
struct Predictor {
  PredictOptions options;
  Trained trained;
  inference::SlidingWindowOptions window;
  data::Transforms transforms;
  std::vector<double> spacing_um;  // [[z,] y,] x; empty: the file's
  bool with_target;
  c10::Device device;
  std::string folder;
  cli::Results& results;
  metrics::Dice dice = trained.labels.dice();
  std::set<std::string> taken;

  void predict(data::Sample sample) {
    const auto found = sample.sources.find(trained.x_key);
    const data::Source source =  // transforms may drop it
        found == sample.sources.end() ? data::Source() : found->second;
    Rng unused(0);
    at::Tensor shown;  // as it was loaded, or cropped: for the overlay
    for (const auto& transform : transforms) {
      transform->apply(sample, unused);
      const at::Tensor& image = sample.at(trained.x_key);
      if (!shown.defined() || shown.sizes() != image.sizes()) shown = image;
    }
    for (std::size_t d = 0; d < spacing_um.size(); ++d)
      sample.geometry.spacing_um[3 - spacing_um.size() + d] = spacing_um[d];
    const at::Tensor image = sample.at(trained.x_key).unsqueeze(0);  // (1,C,[D,]H,W)
    if (image.size(1) != trained.model->in_channels()) {
      throw DataError(fmt::format("{}: {} channels, the model expects {}",
                                  sample.id,
                                  image.size(1),
                                  trained.model->in_channels()));
    }
    at::Tensor truth;
    if (with_target)
      truth = trained.labels.target_of(sample, trained.y_key, trained.x_key).unsqueeze(0);
    const auto model = [this](const at::Tensor& windows) { return (*trained.model)(windows); };
    const at::Tensor logits = inference::sliding_window(image.to(device), model, window).cpu();
    expect_finite(logits, sample.id);
    const at::Tensor mask = trained.labels.predict(logits, options.threshold);
    if (with_target) dice.update(trained.labels.one_hot(mask), trained.labels.one_hot(truth));
    const std::string stem = folder + "/" + output_stem(source, taken);
    io::write_ome_tiff(
        stem + ".ome.tif",
        to_output(logits, mask, trained.labels, options.save, sample, trained.y_key));
    results.add("prediction", stem + ".ome.tif");
    if (!options.overlay) return;
    io::write_png(stem + "_overlay.png",
                  inference::draw_overlay(shown, trained.labels.flattened(mask)[0][0]));
    results.add("overlay", stem + "_overlay.png");
  }

  /// A mask would hide it: a comparison with NaN is false.
  static void expect_finite(const at::Tensor& logits, const std::string& id) {
    const int64_t bad = logits.isfinite().logical_not().sum().item<int64_t>();
    if (bad > 0) {
      throw DataError(
          fmt::format("{}: {} of {} values that the model makes of it are NaN or infinite",
                      id,
                      bad,
                      logits.numel()));
    }
  }
};

int predict(cli::Run run, const PredictConfig& config) {
  const auto begin = std::chrono::steady_clock::now();
  watch_signals();
  perf::prepare(config.performance);
  const c10::Device device = perf::choose_device(config.trainer.accelerator);
  const std::string& path = config.data.path;
  const bool is_manifest = ends_with(path, ".csv") || ends_with(path, ".tsv");
  cli::Results results(run.json);
  Predictor predictor{config.predict,
                      load_trained(config.checkpoint, config.inference_args),
                      {},
                      {},
                      config.data.spacing_um,
                      is_manifest && config.data.with_target,
                      device,
                      "",
                      results};
  const Trained& trained = predictor.trained;
  predictor.window = config::parse<inference::SlidingWindowOptions>(trained.window);
  predictor.transforms = input_transforms(trained, predictor.with_target);
  std::vector<std::string> target;
  if (predictor.with_target) target.push_back(trained.y_key);
  std::vector<data::Sample> inputs = list_inputs(path, trained.x_key, target);
  inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
      static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  nn::place_model(*trained.model, trained.config.at("task.model"), device);
  predictor.folder = open_run_folder(run);
  perf::apply(config.performance, device);
  log::info(
      "{}: {} images on {}", config.checkpoint.ckpt_path, inputs.size(), perf::describe(device));

  const c10::InferenceMode inference_mode;
  Progress progress("predicting", static_cast<int64_t>(inputs.size()));
  int64_t done = 0, failed = 0;
  for (const data::Sample& sample : inputs) {
    if (signal_received() != 0) break;
    try {
      predictor.predict(sample);
    } catch (const DataError& error) {  // the others still count
      log::write(log::Level::error, error.what());
      results.add("failed", sample.id);
      ++failed;
    }
    progress.update(++done);
  }
  progress.finish();
  if (predictor.with_target) {
    for (const auto& [name, value] : trained.labels.scores(predictor.dice))
      results.add(name, value);
    const std::string missing = trained.labels.what_is_missing(predictor.dice);
    if (!missing.empty()) log::warn("{}", missing);
  }
  results.add("output_dir", predictor.folder);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const int signal = signal_received();
  log::write(signal == 0 ? log::Level::info : log::Level::warn,
             fmt::format("{}{} of {} images predicted in {}",
                         signal == 0 ? "" : "interrupted: ",
                         done - failed,
                         inputs.size(),
                         format_seconds(elapsed.count())));
  results.print();
  return signal != 0 ? signal_exit_code(signal) : failed == 0 ? 0 : 2;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_predict(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::predict);
}
