#include "inference/models/trained_model.h"

#include <filesystem>

#include <fmt/format.h>
#include <glob.h>

#include "base/error.h"
#include "base/files.h"
#include "inference/isolated.h"
#include "inference/models/model_kinds.h"

namespace cytra::inference {
namespace {

LoadedModel load_model(const std::string& path, const CheckpointOptions& options) {
  const io::ModelKind kind = io::kind_of(path);
  const bool is_said = !options.foreign.layout.empty() || !options.foreign.output.empty();
  if (is_said && kind != io::ModelKind::onnx) {
    throw ConfigError("model.{}: it is for ONNX and OpenVINO files, and {} is none; leave it out",
                      options.foreign.layout.empty() ? "output" : "layout",
                      path);
  }
  const auto found = model_kinds().find(kind);
  if (found != model_kinds().end()) return found->second.load(path, options);
  const std::string exported = std::filesystem::path(path).replace_extension(".onnx").string();
  if (exported != path && file_exists(exported)) return load_model(exported, options);
  throw ConfigError(
      path +
      ": this program has no PyTorch and runs exported models alone; expected an ONNX file, "
      "as `export_model format=onnx` writes it");
}

/// Replaces shell patterns, which name no file themselves, by the matching files, sorted by name,
/// and a folder of nnU-Net by its folds.
std::vector<std::string> checkpoint_paths(const std::vector<std::string>& given) {
  std::vector<std::string> paths, all;
  for (const std::string& path : given) {
    if (path.find_first_of("*?[") == std::string::npos || path_exists(path)) {
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
    const auto kind = model_kinds().find(io::ModelKind::nnunet);
    const std::string folder =
        kind != model_kinds().end() && folder_exists(path) ? io::nnunet_folder(path) : "";
    if (folder.empty()) {
      all.push_back(path);
    } else {
      for (std::string& fold : kind->second.parts(folder)) all.push_back(std::move(fold));
    }
  }
  return all;
}

/// Checks that models agree. Throws: ConfigError naming the key in which another model differs
/// from the first.
void expect_agreement(const LoadedModel& first, const LoadedModel& other) {
  const auto differ = [&](const char* key, const std::string& a, const std::string& b) {
    if (a == b) return;
    throw ConfigError(
        "checkpoint.ckpt_path: the outputs of {} and {} can't be averaged: {} is {} and {}",
        first.path,
        other.path,
        key,
        a,
        b);
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

/// Whether both are models of nnU-Net, with classes of other names.
bool is_further_part(const LoadedModel& part, const LoadedModel& model) {
  const auto names = [](const LoadedModel& one) {
    const config::Node* found = one.config.find("task.class_names");
    return found == nullptr ? "" : config::to_json(*found);
  };
  return names(part) != names(model) && io::kind_of(part.path) == io::ModelKind::nnunet &&
         io::kind_of(model.path) == io::ModelKind::nnunet;
}

}  // namespace

double temperature_of(const LoadedModel& model, double asked) {
  if (asked != 0) return asked;
  if (model.temperature) return *model.temperature;
  throw ConfigError(
      "predict.temperature=auto: {} holds none; expected a number, or a checkpoint of a training "
      "with the metric temperature: metrics=[dice,temperature]",
      model.path);
}

bool keeps_file_grid(const LoadedModel& model, const std::optional<bool>& asked) {
  return asked.value_or(model.config.get<bool>("task.original_grid", false));
}

std::vector<LoadedModel> load_models(const CheckpointOptions& options) {
  std::vector<LoadedModel> models;
  std::vector<std::size_t> firsts;  // each part's
  for (const std::string& path : checkpoint_paths(options.ckpt_path)) {
    models.push_back(load_model(path, options));
    LoadedModel& model = models.back();
    model.forward = isolated(std::move(model.forward));
    if (firsts.empty() || is_further_part(models[firsts.back()], model))
      firsts.push_back(models.size() - 1);
    model.part = firsts.size() - 1;
    expect_agreement(models[firsts.back()], model);
  }
  if (firsts.size() > 1) model_kinds().at(io::ModelKind::nnunet).join(models, firsts);
  return models;
}

}  // namespace cytra::inference
