#include "cli/models_at_hand.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/node.h"

namespace cytra::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  const char* const more = std::getenv("CYTRA_MODELS");
  for (const std::string& folder : split(more == nullptr ? "" : more, ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  const fs::path program = program_folder();
  for (const char* relative : {"../share/cytra/models", "../../../models"}) {  // as config_folder()
    if (!folder_exists(program / relative)) continue;
    folders.push_back((program / relative).lexically_normal());
    break;
  }
  return folders;
}

/// What the head of a model's card says.
config::Node card_of(const fs::path& file) {
  const fs::path card = fs::path(file).replace_extension(".md");
  if (!file_exists(card)) return {};
  const std::string text = read_file(card.string());
  const std::size_t end = text.starts_with("---\n") ? text.find("\n---\n", 3) : std::string::npos;
  return end == std::string::npos ? config::Node()
                                  : config::parse_yaml(text.substr(4, end - 3), card.string());
}

}  // namespace

std::vector<ModelAtHand> models_at_hand() {
  std::map<std::string, std::string> found;
  std::error_code ignored;
  for (const fs::path& folder : model_folders()) {
    std::map<std::string, std::string> here;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".ckpt" && path.extension() != ".onnx") continue;
      std::string& file = here[path.stem().string()];
      if (file.empty() || path.extension() == ".ckpt") file = path.string();
    }
    found.merge(here);
  }
  std::vector<ModelAtHand> models;
  for (auto& [name, file] : found) models.push_back({name, file});
  return models;
}

std::vector<ModelAtHand> models_that_make_images() {
  std::vector<ModelAtHand> models = models_at_hand();
  std::erase_if(models, [](const ModelAtHand& model) {
    return card_of(model.file).get<std::string>("result", "") != "image";
  });
  return models;
}

std::string list_of_models(bool json) {
  std::string text;
  config::Node list = config::Node::make_list();
  for (const ModelAtHand& model : models_at_hand()) {
    std::error_code ignored;
    const auto bytes = static_cast<int64_t>(fs::file_size(model.file, ignored));
    config::Node& all = list.list.emplace_back(config::Node::make_map());
    all.set("name", config::Node::make_string(model.name));
    all.set("file", config::Node::make_string(model.file));
    all.set("size", config::Node::make_integer(bytes));
    text += fmt::format(
        "{}\n  {}, {}\n", model.name, model.file, format_bytes(static_cast<double>(bytes)));
    const config::Node card = card_of(model.file);
    for (const char* key : {"task", "result", "images", "score", "license", "source"}) {
      const config::Node* const said = card.find(key);
      if (said == nullptr) continue;
      all.set(key, *said);
      text += fmt::format("  {:<8} {}\n", key, said->as<std::string>());
    }
  }
  if (json) return config::to_json(list) + "\n";
  return text.empty() ? "no models; folders with some: CYTRA_MODELS=FOLDER:FOLDER\n" : text;
}

}  // namespace cytra::cli
