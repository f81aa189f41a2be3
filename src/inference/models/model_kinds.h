#pragma once
// The entry by which a kind of model registers itself; each is one file, which no other file lists.
#include <map>
#include <string>
#include <vector>

#include "inference/models/trained_model.h"
#include "io/weights/archive.h"

namespace cytra::inference {

struct ModelKindEntry {
  /// Loads the model that a path names, one of options.ckpt_path. Throws: as load_models().
  LoadedModel (*load)(const std::string& path, const CheckpointOptions& options);
  /// The models that a folder of this kind stands for, whose outputs are averaged; null: itself.
  std::vector<std::string> (*parts)(const std::string& folder) = nullptr;
  /// Makes models with other classes each the parts of one task: the first model's configuration
  /// becomes that of all. `firsts`: the first model of each part, in order. Null: there are none.
  /// Throws: ConfigError where they do not fit each other.
  void (*join)(std::vector<LoadedModel>& models, const std::vector<std::size_t>& firsts) = nullptr;
};
std::map<io::ModelKind, ModelKindEntry>& model_kinds();

/// Registers a kind: `const bool added = add_model_kind(io::ModelKind::onnx, {load});`
bool add_model_kind(io::ModelKind kind, const ModelKindEntry& entry);

}  // namespace cytra::inference
