// Finds the checkpoint that an option names by "best", "last", a run's folder, a model at hand or
// an address.
#include "cli/named_checkpoints.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/fetched_model.h"
#include "cli/models_at_hand.h"
#include "cli/newest_training.h"

namespace cytra::cli {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// The checkpoint in a folder. `which`: best or last. "" for a folder without checkpoints.
std::string checkpoint_in(const fs::path& folder, const std::string& which) {
  for (const std::string& name : {which, std::string("last"), std::string("best")}) {
    for (const fs::path& place : {folder / "checkpoints", folder}) {
      const fs::path file = place / (name + ".ckpt");
      if (!file_exists(file)) continue;
      if (name != which)
        log::warn("{}: no {}.ckpt; {} is used instead", place.string(), which, file.string());
      return file.string();
    }
  }
  return "";
}

/// The newest checkpoint of all runs below `folder`.
std::string newest_below(const fs::path& folder, const std::string& which) {
  const fs::path newest = newest_file(folder, [](const fs::path& path) {
    return path.parent_path().filename() == "checkpoints" &&
           (path.filename() == "last.ckpt" || path.filename() == "best.ckpt");
  });
  return newest.empty() ? "" : checkpoint_in(newest.parent_path().parent_path(), which);
}

/// The file of the model at hand of that name; "" where a path is named, or `exists`, which is
/// taken before a name. Throws: ConfigError with the nearest name.
std::string model_at_hand(const std::string& key, const std::string& name, bool exists) {
  if (name.empty() || name.find_first_of("/.\\*?[") != std::string::npos) return "";
  std::vector<std::string> names{"best", "last"};
  for (ModelAtHand& model : models_at_hand()) {
    if (model.name == name && exists)
      log::info("{}={}: this path is taken, not the model at hand {}", key, name, model.file);
    else if (model.name == name)
      return model.file;
    names.push_back(std::move(model.name));
  }
  if (exists) return "";
  throw ConfigError(
      "{}={}: no file, and no model at hand has that name.{} `cytra models` lists them",
      key,
      name,
      suggestion(name, names));
}

void name_one(Node& value, const std::string& key, const Run& run) {
  if (value.is_map()) {
    for (auto& [name, one] : value.map) name_one(one, key + "." + name, run);
  }
  for (Node& one : value.list) name_one(one, key, run);
  if (value.kind != config::Kind::string) return;
  const std::string asked = value.string;
  const bool trains = run.program == "train";  // `train` finds the run that it continues by itself
  const Node* weights_only = run.config.find("checkpoint.weights_only");
  const bool begins = weights_only != nullptr && weights_only->kind == config::Kind::boolean &&
                      weights_only->boolean;
  const bool is_run = asked == "best" || asked == "last";
  std::string found = is_address(asked) ? fetched_model(key, asked)
                      : is_run          ? ""
                                        : model_at_hand(key, asked, path_exists(asked));
  if (folder_exists(asked)) {
    found = checkpoint_in(asked, trains && !begins ? "last" : "best");
  } else if (is_run && !trains && !path_exists(asked)) {
    const fs::path folder =
        fs::path(run.config.get<std::string>("paths.log_dir", "logs")) / "train";
    found = newest_below(folder, asked);
    if (found.empty())
      throw ConfigError("{}={}: no training below {} has a checkpoint; name the folder of a run",
                        key,
                        asked,
                        folder.string());
  }
  if (found.empty()) return;
  log::info("{}={}: {}", key, asked, found);
  value = Node::make_string(found);
}

/// Lets `serve` without a model offer those at hand.
void serve_what_is_at_hand(Run& run) {
  for (const char* key : {"checkpoint.ckpt_path", "models"}) {
    const Node* const given = run.config.find(key);
    if (given == nullptr || !given->is_null()) return;
  }
  Node models = Node::make_map();
  for (const ModelAtHand& model : models_that_make_images())
    models.set(model.name, Node::make_string(model.file));
  if (!models.map.empty()) *run.config.find("models") = std::move(models);
}

}  // namespace

void name_checkpoints(Run& run) {
  if (run.program == "serve") serve_what_is_at_hand(run);
  for (const char* key :
       {"checkpoint.ckpt_path", "detector.path", "detector.views", "segmenter.path", "models"}) {
    if (Node* value = run.config.find(key)) name_one(*value, key, run);
  }
}

}  // namespace cytra::cli
