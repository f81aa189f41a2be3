// Loads the weights of networks that are registered here, nnU-Net's among them.
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/json.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "inference/imported/cellpose.h"
#include "inference/imported/nnunet.h"
#include "inference/models/model_kinds.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"
#include "io/weights/unpacked_archive.h"
#include "nn/fingerprint.h"
#include "nn/fold.h"
#include "nn/promptable.h"
#include "nn/weights.h"

namespace cytra::inference {
namespace {

void expect_finite_weights(const nn::Model& network, const std::string& path) {
  for (const auto& [name, tensor] : nn::state_of(network)) {
    if (tensor.isfinite().all().item<bool>()) continue;
    throw DataError(
        "{}: the weights '{}' hold NaN or infinity: this model predicts nothing; choose an earlier "
        "checkpoint",
        path,
        name);
  }
}

/// The temperature that a checkpoint's validation has found.
std::optional<double> temperature_in(const std::string& path) {
  if (io::is_torch_file(path)) return {};
  const io::SafetensorsFile file(path);
  const auto state = file.metadata().find("state");
  if (state == file.metadata().end()) return {};  // weights alone
  const config::Node saved = config::parse_json(state->second, path + " (state)");
  const config::Node* metrics = saved.find_direct("metrics");
  const config::Node* found =
      metrics == nullptr ? nullptr : metrics->find_direct("val/temperature");
  if (found == nullptr || !std::isfinite(found->as<double>())) return {};
  return found->as<double>();
}

/// Takes the last layer apart where it makes more channels than it gets: sums of windows, and what
/// is interpolated, are then the fewer.
void split_last_layer(LoadedModel& loaded) {
  const std::string name = loaded.network->last_layer();
  const auto parameters = loaded.network->named_parameters();
  const at::Tensor* weight = name.empty() ? nullptr : parameters.find(name + ".weight");
  if (weight == nullptr || !parameters.contains(name + ".bias") ||
      weight->numel() != weight->size(0) * weight->size(1) || weight->size(0) <= weight->size(1))
    return;
  loaded.features = [network = loaded.network](const at::Tensor& windows) {
    return std::vector<at::Tensor>{network->checked_features(windows)};
  };
  loaded.last_layer = [network = loaded.network, name] {
    const auto placed = network->named_parameters();
    return std::pair(placed[name + ".weight"].to(at::kFloat).flatten(1).contiguous(),
                     placed[name + ".bias"].to(at::kFloat));
  };
}

/// Loads weights into a network that is registered here. `is_own`: the configuration is the
/// checkpoint's own.
LoadedModel load_network(const std::string& path, config::Node config, bool is_own) {
  LoadedModel loaded;
  loaded.path = path;
  loaded.config = std::move(config);
  if (!loaded.config.has("task.model")) {
    throw ConfigError(
        "{}: its configuration has no task.model, so nothing says which network the weights are "
        "of; expected checkpoint.config=YAML with {{task: {{model: {{_target_: ...}}, x_key: "
        "...}}, data: {{transforms: ...}}}}; a Trainer in C++ writes what it is given as `config`",
        path);
  }
  config::Node model = loaded.config.at("task.model");
  // The weights that the training began with may be gone; the checkpoint has all weights.
  if (model.find_direct("encoder_ckpt") != nullptr) model.set("encoder_ckpt", config::Node());
  // So may be the file of an exported network; the checkpoint has its graph.
  const auto target = model.get<std::string>("_target_", "");
  if (is_own && target == "ExportedProgram") model.set("file", config::Node::make_string(path));
  loaded.network = make<nn::Model>(model);
  if (std::dynamic_pointer_cast<nn::PromptableModel>(loaded.network) != nullptr) {
    throw DataError(path +
                    ": a prompted segmenter, which makes masks of boxes: `batch_segment "
                    "--segmenter` takes it, with a detector for the boxes");
  }
  nn::load_weights(path, *loaded.network);
  expect_finite_weights(*loaded.network, path);
  loaded.network->eval();
  for (at::Tensor& parameter : loaded.network->parameters()) parameter.requires_grad_(false);
  loaded.in_channels = loaded.network->in_channels();
  loaded.out_channels = loaded.network->out_channels();
  loaded.spatial_dims = loaded.network->spatial_dims();
  loaded.divisor = loaded.network->divisor();
  loaded.fixed_window = loaded.network->fixed_size();
  if (model.find_direct("file") != nullptr) model.set("file", config::Node());  // no matter where
  loaded.fingerprint = nn::fingerprint_of(*loaded.network, model);
  loaded.temperature = temperature_in(path);
  loaded.forward = [network = loaded.network](const at::Tensor& windows) {
    return network->all(windows);
  };
  loaded.place = [network = loaded.network](c10::Device device, bool on_tensor_cores) {
    nn::fold(*network);
    nn::place(*network, device, on_tensor_cores);
  };
  split_last_layer(loaded);
  return loaded;
}

/// Loads one fold of a trained model of nnU-Net.
LoadedModel load_nnunet(const std::string& path, const std::string& checkpoint) {
  NnunetModelFile file = read_nnunet(checkpoint);
  LoadedModel loaded = load_network(checkpoint, std::move(file.config), false);
  loaded.path = path;
  if (file.order.empty()) return loaded;
  std::vector<int64_t> there{0, 1}, back(5), divisor(3);
  for (const int64_t axis : file.order) there.push_back(axis + 2);
  for (std::size_t d = 0; d < there.size(); ++d)
    back[static_cast<std::size_t>(there[d])] = static_cast<int64_t>(d);
  for (std::size_t d = 0; d < file.order.size(); ++d)
    divisor[static_cast<std::size_t>(file.order[d])] = loaded.divisor[d];
  loaded.divisor = divisor;
  loaded.network = nullptr;  // it does not turn the axes
  const auto turned = [&](Forward run) -> Forward {
    return [there, back, run = std::move(run)](const at::Tensor& windows) {
      std::vector<at::Tensor> outputs = run(windows.permute(there).contiguous());
      for (at::Tensor& output : outputs) output = output.permute(back).contiguous();
      return outputs;
    };
  };
  loaded.forward = turned(std::move(loaded.forward));
  if (loaded.features) loaded.features = turned(std::move(loaded.features));
  return loaded;
}

/// Loads the only fold of an archive of one.
LoadedModel load_nnunet_archive(const std::string& path) {
  const io::UnpackedArchive archive(path);
  const std::vector<std::string> folds = nnunet_checkpoints(io::nnunet_folder(archive.folder()));
  if (folds.size() == 1) return load_nnunet(path, folds[0]);
  throw ConfigError(
      "{}: {} folds of a model of nnU-Net; unpack it, and name its folder for their average, or "
      "one fold's checkpoint_final.pth",
      path,
      folds.size());
}

LoadedModel load_weights(const std::string& path, const CheckpointOptions& options) {
  if (options.config)
    return load_network(path, config::load_run_config(*options.config, true), false);
  if (std::optional<config::Node> told = cellpose_config(path))
    return load_network(path, std::move(*told), false);
  return load_network(path, nn::checkpoint_config(path), true);
}

LoadedModel load_nnunet_model(const std::string& path, const CheckpointOptions& options) {
  if (options.config) return load_weights(path, options);
  return io::nnunet_folder(path).empty() ? load_nnunet_archive(path) : load_nnunet(path, path);
}

const bool are_networks_added =
    add_model_kind(io::ModelKind::weights, {load_weights}) &&
    add_model_kind(io::ModelKind::nnunet, {load_nnunet_model, nnunet_checkpoints, join_nnunet});

}  // namespace
}  // namespace cytra::inference
