#include "config/run_config.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "config/composer.h"
#include "config/composition/merge.h"

namespace cytra::config {
namespace {

namespace fs = std::filesystem;

Node* runtime_of(Node& root) {
  Node* runtime = root.find("hydra.runtime");
  return runtime != nullptr && runtime->is_map() ? runtime : nullptr;
}

constexpr const char* kEnvironment = "${oc.env:";

bool is_kept(const Node& node) {
  return node.kind == Kind::string && node.string.find(kEnvironment) != std::string::npos;
}

bool names_environment(const Node& node) {
  return (node.kind == Kind::string && node.string.find("oc.env") != std::string::npos) ||
         std::ranges::any_of(node.list, names_environment) ||
         std::ranges::any_of(node.map,
                             [](const auto& entry) { return names_environment(entry.second); });
}

/// Copies the texts of `kept` that name the environment into the same places of `config`.
void take_kept(Node& config, const Node& kept) {
  if (is_kept(kept) && config.kind == Kind::string) config.string = kept.string;
  for (auto& [key, child] : config.map) {
    if (const Node* same = kept.find_direct(key)) take_kept(child, *same);
  }
  for (std::size_t i = 0; i < config.list.size() && i < kept.list.size(); ++i)
    take_kept(config.list[i], kept.list[i]);
}

void keep(Node& config, const Node& composed, const Node& root) {
  if (composed.kind == Kind::string && composed.string.find("${") != std::string::npos) {
    try {
      return take_kept(config, evaluate(root, composed.path, true));
    } catch (const ConfigError&) {  // a function that needs the value
      if (config.kind == Kind::string) config.string = composed.string;
      return;
    }
  }
  for (auto& [key, child] : config.map) {
    if (const Node* same = composed.find_direct(key)) keep(child, *same, root);
  }
  for (std::size_t i = 0; i < config.list.size() && i < composed.list.size(); ++i)
    keep(config.list[i], composed.list[i], root);
}

}  // namespace

Node keep_environment(Node config, const Node& composed) {
  if (!names_environment(composed)) return config;
  Node root = composed;
  set_paths(root);
  keep(config, root, root);
  return config;
}

void fill_in_environment(Node& config) {
  if (is_kept(config)) {
    Node alone = Node::make_map();
    alone.set("value", config);
    try {
      config.string = evaluate(alone, "value").as<std::string>();
    } catch (const ConfigError&) {  // reported where the value is needed
    }
  }
  for (auto& [key, child] : config.map) fill_in_environment(child);
  for (Node& item : config.list) fill_in_environment(item);
}

Node without_hydra(Node root) {
  std::erase_if(root.map, [](const auto& entry) { return entry.first == "hydra"; });
  return root;
}

Node job_config(Node root) {
  resolve(root);
  return without_hydra(std::move(root));
}

void set_output_dir(Node& root) {
  Node* runtime = runtime_of(root);
  if (runtime == nullptr) return;
  const Node* set = runtime->find_direct("output_dir");
  const Node* run_dir = root.find("hydra.run.dir");
  if ((set != nullptr && !is_missing(*set)) || run_dir == nullptr || is_missing(*run_dir)) return;
  const auto folder = evaluate(root, "hydra.run.dir").as<std::string>();
  runtime->set("output_dir", Node::make_string(fs::absolute(folder).lexically_normal().string()));
  set_paths(root);
}

std::string output_dir(const Node& root) {
  const char* key = root.has("paths.output_dir") ? "paths.output_dir" : "hydra.runtime.output_dir";
  return evaluate(root, key).as<std::string>();
}

void move_output(Node& root, const std::string& folder) {
  if (Node* runtime = runtime_of(root)) runtime->set("output_dir", Node::make_string(folder));
  Node* paths = root.find("paths");
  if (paths != nullptr && output_dir(root) != folder)  // the tree names another folder itself
    paths->set("output_dir", Node::make_string(folder));
  set_paths(root);
}

void save_run_config(const std::string& folder, const Node& root, const std::string& command) {
  const auto name = root.get<std::string>("hydra.output_subdir", "");
  if (name.empty()) return;
  const std::string place = folder + "/" + name;
  make_folders(place);
  write_file(place + "/config.yaml", to_yaml(without_hydra(root)));
  Node hydra = Node::make_map();
  hydra.set("hydra", root.at("hydra"));
  write_file(place + "/hydra.yaml", to_yaml(hydra));
  write_file(place + "/overrides.yaml", to_yaml(root.at("hydra.overrides.task")));
  write_file(place + "/command.sh", command + "\n");
}

Node load_run_config(const std::string& path, bool resolved) {
  fs::path file = path;
  if (folder_exists(file)) {
    const bool is_run = path_exists(file / ".hydra" / "config.yaml");
    file = is_run ? file / ".hydra" / "config.yaml" : file / "config.yaml";
    if (!path_exists(file))
      throw ConfigError(path + ": no .hydra/config.yaml in it, expected the folder of a run");
  }
  Node root = load_yaml(file.string());
  if (!root.is_map()) throw ConfigError(root.where() + ": expected a map of options");
  if (!resolved) return without_hydra(std::move(root));
  const fs::path beside = file.parent_path() / "hydra.yaml";
  if (path_exists(beside)) {
    const Node hydra = load_yaml(beside.string());
    if (const Node* node = hydra.find_direct("hydra")) root.set("hydra", *node);
  }
  return job_config(std::move(root));
}

}  // namespace cytra::config
