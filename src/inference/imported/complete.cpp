#include "inference/imported/complete.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/run_config.h"
#include "device/error.h"
#include "nn/exported/message.h"
#include "nn/script/fitting.h"

namespace cytra::inference {
namespace {

using config::Node;
using Sides = std::vector<int64_t>;

/// Sets `key`, which may be dotted, unless it exists already.
void set_default(Node& node, const std::string& key, Node value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    const Node* found = node.find_direct(key);
    if (found == nullptr || found->is_null()) node.set(key, std::move(value));
    return;
  }
  const std::string front = key.substr(0, dot);
  Node* child = node.find_direct(front);
  if (child == nullptr || !child->is_map()) child = &node.set(front, Node::make_map());
  set_default(*child, key.substr(dot + 1), std::move(value));
}

/// Runs an imported model on noise.
class Trial {
 public:
  Trial(const Forward& forward, int64_t channels) : forward_(forward), channels_(channels) {}

  /// Whether the model takes a window of these sides, and returns one that fits in its place.
  bool fits(const Sides& sides) {
    Sides shape{1, channels_};
    shape.insert(shape.end(), sides.begin(), sides.end());
    tried_ = fmt::format("({})", fmt::join(shape, ","));
    try {
      const c10::InferenceMode inference_mode;
      // Whole numbers, as an input of integers takes them.
      const std::vector<at::Tensor> outputs = forward_(at::ones(shape));
      if (outputs.empty()) throw DataError("it returns nothing");
      const at::Tensor& first = outputs[0];
      bool is_same = first.dim() == std::ssize(shape) && first.size(0) == 1;
      for (std::size_t d = 0; is_same && d < sides.size(); ++d) {
        const int64_t out = first.size(static_cast<int64_t>(d) + 2);
        is_same = out > 0 && (out % sides[d] == 0 || sides[d] % out == 0);
      }
      if (!is_same) throw DataError("it returns ({})", fmt::join(first.sizes(), ","));
      out_channels_ = first.size(1);
      outputs_ = outputs;
      return true;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) throw;
      said_ = nn::brief(error);
      return false;
    }
  }
  int64_t out_channels() const { return out_channels_; }
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  std::string failure() const { return fmt::format("of {}: {}", tried_, said_); }

 private:
  const Forward& forward_;
  int64_t channels_, out_channels_ = 0;
  std::vector<at::Tensor> outputs_;
  std::string tried_, said_;
};

/// The positive numbers of a key, one for each side or one for all; empty: it is not given.
/// Throws: ConfigError for others.
Sides sides_in(const Node& config, const char* key, std::size_t dims) {
  const Node* given = config.find(key);
  if (given == nullptr || given->is_null()) return {};
  Sides sides =
      given->kind == config::Kind::integer ? Sides{given->as<int64_t>()} : given->as<Sides>();
  if (sides.size() == 1) sides.resize(dims, sides[0]);
  constexpr int64_t kMostSide = 4096;
  const bool fits =
      std::ranges::all_of(sides, [](int64_t side) { return side >= 1 && side <= kMostSide; });
  if (sides.size() == dims && fits) return sides;
  throw ConfigError(
      "{}: {}: expected {} numbers from 1 to {}", given->where(), key, dims, kMostSide);
}

/// The window where none is given: a size that a GPU of 8 GB and a CPU can compute, in multiples
/// of `divisor`.
Sides usual_window(const Sides& divisor) {
  return mapped(divisor, [&](int64_t side) {
    return std::max<int64_t>(1, (divisor.size() == 3 ? 96 : 256) / side) * side;
  });
}

/// Runs a foreign network, whose failures name its file and the windows.
auto naming_failures(const std::string& path, decltype(ImportedModel::forward) forward) {
  return [path, run = std::move(forward)](const at::Tensor& windows) {
    try {
      return run(windows);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) throw;
      throw DataError("{}: it fails for windows of ({}): {}",
                      path,
                      fmt::join(windows.sizes(), ","),
                      nn::brief(error));
    }
  };
}

/// The activation that a network ends with: the one that its file tells, or a softmax where a
/// trial's output has the sum 1; "none".
std::string activation_of(const std::string& path,
                          const at::Tensor& output,
                          const std::string& told) {
  const c10::InferenceMode inference_mode;
  const double least = output.min().item<double>(), most = output.max().item<double>();
  const bool are_shares = least >= 0 && most <= 1;
  const bool are_classes =
      are_shares && output.size(1) > 1 && (output.sum({1}) - 1).abs().max().item<double>() < 1e-4;
  const std::string found = !told.empty() ? told : are_classes ? "softmax" : "none";
  if (found != "none")
    log::info("{}: it ends with a {}; where not: model.activation=none", path, found);
  else if (are_shares && most > least)
    log::warn("{}: a trial gives {:.3g} to {:.3g}: for probabilities set model.activation=sigmoid",
              path,
              least,
              most);
  return found;
}

/// Finds what images the model takes. Throws: ConfigError, DataError where nothing says it rightly.
void take_channels(LoadedModel& model, const ImportedModel& imported) {
  model.in_channels = model.config.get<int64_t>("task.model.in_channels", imported.in_channels);
  model.spatial_dims = model.config.get<int64_t>("task.model.spatial_dims", imported.spatial_dims);
  for (const auto& [key, value] : {std::pair("in_channels", model.in_channels),
                                   std::pair("spatial_dims", model.spatial_dims)}) {
    if (value > 0) continue;
    throw ConfigError(
        "{}: it does not say its {}: set task.model.{} in a YAML file, and checkpoint.config to "
        "that",
        model.path,
        key,
        key);
  }
  if (model.spatial_dims != 2 && model.spatial_dims != 3) {
    throw DataError(
        "{}: it works in {} dimensions, expected 2 or 3 (task.model.spatial_dims in "
        "checkpoint.config)",
        model.path,
        model.spatial_dims);
  }
  constexpr int64_t kMostChannels = 65536;
  if (model.in_channels > kMostChannels) {
    throw DataError(
        "{}: it says that it takes images of {} channels, expected {} at most "
        "(task.model.in_channels in checkpoint.config)",
        model.path,
        model.in_channels,
        kMostChannels);
  }
}

}  // namespace

LoadedModel complete(const std::string& path,
                     ImportedModel imported,
                     const CheckpointOptions& options) {
  LoadedModel model;
  model.path = path;
  const bool is_described = !imported.config.map.empty();
  model.config =
      options.config ? config::load_run_config(*options.config, true) : std::move(imported.config);
  take_channels(model, imported);
  const auto dims = static_cast<std::size_t>(model.spatial_dims);
  Trial trial(imported.forward, model.in_channels);
  const auto fits = [&](const Sides& sides) { return trial.fits(sides); };
  Sides only = sides_in(model.config, "task.model.sides", dims),
        divisor = sides_in(model.config, "task.model.divisor", dims);
  if (divisor.empty()) divisor = imported.divisor;
  if (only.empty() && divisor.empty()) only = imported.window;
  nn::Fitting fitting = !only.empty()      ? nn::Fitting{only, true}
                        : !divisor.empty() ? nn::fit_divisor(divisor, fits)
                                           : nn::find_divisor(dims, fits);
  if (only.empty() && (fitting.divisor.empty() || fitting.is_fixed)) {
    const auto roi = model.config.get<Sides>("task.inference_args.roi_size", {});
    const bool is_said = roi.size() == dims && *std::ranges::min_element(roi) > 0;
    if (is_said && fits(roi)) fitting = {roi, true};
  }
  if (fitting.divisor.size() != dims ||
      (trial.out_channels() == 0 && !trial.fits(fitting.divisor))) {
    throw DataError(
        "{}: it fails for windows {}; say what it takes in a YAML file, and checkpoint.config "
        "which: the only sides as task.model.sides: [{}], or task.model.{{in_channels, "
        "spatial_dims, divisor}}",
        path,
        trial.failure(),
        dims == 3 ? "64, 128, 128" : "320, 320");
  }
  model.out_channels = trial.out_channels();
  std::string activation = options.foreign.activation;
  if (!is_described && !model.config.has("task.decoder") && !model.config.has("task.heads")) {
    if (trial.outputs().size() > 1)
      log::warn("{}: {} outputs, of which the first is predicted", path, trial.outputs().size());
    if (activation == "auto")
      activation = activation_of(path, trial.outputs()[0], imported.activation);
  }
  if (activation != "auto" && activation != "none") {
    set_default(model.config, "task.activation", Node::make_string(activation));
    if (activation == "sigmoid" && model.out_channels > 1)
      set_default(model.config, "task.multilabel", Node::make_boolean(true));
  }
  model.divisor = fitting.divisor;
  if (fitting.is_fixed) model.fixed_window = fitting.divisor;
  const Sides window = fitting.is_fixed ? model.fixed_window : usual_window(fitting.divisor);
  Node& all = model.config;
  if (!all.has("data.transforms")) {
    log::warn(
        "{}: nothing says how its images are prepared: they are taken as they are; "
        "checkpoint.config names a YAML file with data.transforms",
        path);
    set_default(all,
                "data.transforms",
                config::parse_value(fmt::format("{{valid: [{{_target_: LoadImaged, keys: [raw, "
                                                "seg], spatial_dims: {}}}]}}",
                                                dims),
                                    {}));
  }
  set_default(all, "task.x_key", Node::make_string("raw"));
  set_default(all, "task.y_key", Node::make_string("seg"));
  set_default(all, "task.model.out_channels", Node::make_integer(model.out_channels));
  // Unlike the patch, this is a size that is kept.
  if (!fitting.is_fixed)
    set_default(all, "patch_shape", Node::make_list(window));
  else
    set_default(all, "patch_shape", Node::make_list());
  set_default(all, "task.inference_args.roi_size", Node::make_list(window));
  model.fingerprint = imported.fingerprint;
  model.torchscript = std::move(imported.torchscript);
  model.onnx = std::move(imported.onnx);
  model.place = std::move(imported.place);
  model.forward = naming_failures(path, std::move(imported.forward));
  return model;
}

}  // namespace cytra::inference
