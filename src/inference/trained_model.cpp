#include "inference/trained_model.h"

#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <glob.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/json.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "inference/imported/aoti.h"
#include "inference/imported/bioimageio/open.h"
#include "inference/imported/bundle.h"
#include "inference/imported/complete.h"
#include "inference/imported/nnunet.h"
#include "inference/imported/onnx.h"
#include "inference/imported/torchscript.h"
#include "io/safetensors.h"
#include "io/weights/archive.h"
#include "io/weights/torch_file.h"
#include "io/weights/unpacked_archive.h"
#include "nn/fingerprint.h"
#include "nn/fold.h"
#include "nn/model.h"
#include "nn/promptable.h"
#include "nn/weights.h"

namespace cytra::inference {
namespace {

void expect_finite_weights(const nn::Model& network, const std::string& path) {
  for (const auto& [name, tensor] : nn::state_of(network)) {
    if (tensor.isfinite().all().item<bool>()) continue;
    throw DataError(
        fmt::format("{}: the weights '{}' hold NaN or infinity: this model predicts nothing; "
                    "choose an earlier checkpoint",
                    path,
                    name));
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

/// Loads weights into a network that is registered here. `is_own`: the configuration is the
/// checkpoint's own.
LoadedModel load_network(const std::string& path, config::Node config, bool is_own) {
  LoadedModel loaded;
  loaded.path = path;
  loaded.config = std::move(config);
  config::Node model = loaded.config.at("task.model");
  // The weights that the training began with may be gone; the checkpoint has all weights.
  if (model.find_direct("encoder_ckpt") != nullptr) model.set("encoder_ckpt", config::Node());
  // So may be the file of an exported network or a script; the checkpoint has its graph.
  const auto target = model.get<std::string>("_target_", "");
  if (is_own && (target == "ExportedProgram" || target == "ScriptModule"))
    model.set("file", config::Node::make_string(path));
  loaded.network = make<nn::Model>(model);
  if (std::dynamic_pointer_cast<nn::PromptableModel>(loaded.network) != nullptr) {
    throw DataError(path +
                    ": a prompted segmenter, which makes masks of boxes: `batch_segment "
                    "--segmenter` takes it, with a detector for the boxes");
  }
  nn::load_weights(path, *loaded.network, true);
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
  return loaded;
}

/// Opens a model of several files: a folder, or a ZIP archive, which is unpacked while the model
/// lives, as it may be loaded again for another device.
ImportedModel open_unpacked(const std::string& path, ImportedModel (*open)(const std::string&)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || ends_with(path, ".yaml") ||
      ends_with(path, ".yml"))
    return open(path);
  const auto archive = std::make_shared<const io::UnpackedArchive>(path);
  ImportedModel imported = open(archive->folder());
  imported.place = [archive, place = std::move(imported.place)](c10::Device device,
                                                                bool on_tensor_cores) {
    place(device, on_tensor_cores);
  };
  return imported;
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
  loaded.forward = [there, back, run = std::move(loaded.forward)](const at::Tensor& windows) {
    std::vector<at::Tensor> outputs = run(windows.permute(there).contiguous());
    for (at::Tensor& output : outputs) output = output.permute(back).contiguous();
    return outputs;
  };
  return loaded;
}

/// Loads the only fold of an archive of one.
LoadedModel load_nnunet_archive(const std::string& path) {
  const io::UnpackedArchive archive(path);
  const std::vector<std::string> folds = nnunet_checkpoints(io::nnunet_folder(archive.folder()));
  if (folds.size() == 1) return load_nnunet(path, folds[0]);
  throw ConfigError(fmt::format(
      "{}: {} folds of a model of nnU-Net; unpack it, and name its folder for their average, or "
      "one fold's checkpoint_final.pth",
      path,
      folds.size()));
}

LoadedModel load_model(const std::string& path, const std::optional<std::string>& config) {
  const auto load_weights = [&] {
    return load_network(
        path,
        config ? config::load_run_config(*config, true) : nn::checkpoint_config(path),
        !config);
  };
  switch (io::kind_of(path)) {
    case io::ModelKind::torchscript:
      return complete(path, open_torchscript(path), config);
    case io::ModelKind::aoti:
      return complete(path, open_aoti(path), config);
    case io::ModelKind::onnx:
      return complete(path, open_onnx(path), config);
    case io::ModelKind::bioimageio:
      return complete(path, open_unpacked(path, open_bioimageio), config);
    case io::ModelKind::bundle:
      return complete(path, open_unpacked(path, open_bundle), config);
    case io::ModelKind::nnunet:
      if (config) return load_weights();
      return io::nnunet_folder(path).empty() ? load_nnunet_archive(path) : load_nnunet(path, path);
    default:
      return load_weights();
  }
}

/// Replaces shell patterns, which name no file themselves, by the matching files, sorted by name,
/// and a folder of nnU-Net by its folds.
std::vector<std::string> checkpoint_paths(const std::vector<std::string>& given) {
  std::vector<std::string> paths, all;
  for (const std::string& path : given) {
    std::error_code ignored;
    if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path, ignored)) {
      paths.push_back(path);
      continue;
    }
    glob_t found{};
    if (::glob(path.c_str(), 0, nullptr, &found) == 0)
      paths.insert(paths.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    const bool is_none = found.gl_pathc == 0;
    ::globfree(&found);
    if (is_none) throw ConfigError("checkpoint.ckpt_path: no file fits " + path);
  }
  for (const std::string& path : paths) {
    std::error_code ignored;
    const std::string folder =
        std::filesystem::is_directory(path, ignored) ? io::nnunet_folder(path) : "";
    if (folder.empty()) {
      all.push_back(path);
    } else {
      for (std::string& fold : nnunet_checkpoints(folder)) all.push_back(std::move(fold));
    }
  }
  return all;
}

/// Checks that models agree. Throws: ConfigError naming the key in which another model differs
/// from the first.
void expect_agreement(const LoadedModel& first, const LoadedModel& other) {
  const auto differ = [&](const char* key, const std::string& a, const std::string& b) {
    if (a == b) return;
    throw ConfigError(fmt::format(
        "checkpoint.ckpt_path: the outputs of {} and {} can't be averaged: {} is {} and {}",
        first.path,
        other.path,
        key,
        a,
        b));
  };
  differ("in_channels", fmt::to_string(first.in_channels), fmt::to_string(other.in_channels));
  differ("out_channels", fmt::to_string(first.out_channels), fmt::to_string(other.out_channels));
  differ("spatial_dims", fmt::to_string(first.spatial_dims), fmt::to_string(other.spatial_dims));
  const auto text = [](const LoadedModel& loaded, const char* key) {
    const config::Node* node = loaded.config.find(key);
    return node == nullptr ? "null" : config::to_json(*node);
  };
  for (const char* key :
       {"task.multilabel", "task.postprocess", "data.transforms.valid", "data.transforms.predict"})
    differ(key, text(first, key), text(other, key));
  for (const char* key : {"task._target_", "task.class_names", "task.columns"}) {
    const std::string a = text(first, key), b = text(other, key);
    if (a != "null" && b != "null") differ(key, a, b);  // a foreign model's are not known
  }
}

}  // namespace

double temperature_of(const LoadedModel& model, double asked) {
  if (asked != 0) return asked;
  if (model.temperature) return *model.temperature;
  throw ConfigError(fmt::format(
      "predict.temperature=auto: {} holds none; expected a number, or a checkpoint of a training "
      "with the metric temperature: metrics=[dice,temperature]",
      model.path));
}

bool keeps_file_grid(const LoadedModel& model, const std::optional<bool>& asked) {
  return asked.value_or(model.config.get<bool>("task.original_grid", false));
}

std::vector<LoadedModel> load_models(const CheckpointOptions& options) {
  std::vector<LoadedModel> models;
  for (const std::string& path : checkpoint_paths(options.ckpt_path)) {
    models.push_back(load_model(path, options.config));
    expect_agreement(models.front(), models.back());
  }
  return models;
}

}  // namespace cytra::inference
