#include "config/composition/hydra_node.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/composer.h"
#include "config/composition/merge.h"

namespace cytra::config {
namespace {

/// The text "a=1,b=2" of all overrides except those of exclude_keys, sorted.
std::string override_dirname(const std::vector<Override>& overrides, const Node& options) {
  const auto excluded = options.get<std::vector<std::string>>("exclude_keys", {});
  std::vector<std::string> lines;
  for (const Override& override : overrides) {
    if (override.is_hydra()) continue;
    if (!contains(excluded, override.key)) lines.push_back(*override.origin.file);
  }
  std::ranges::sort(lines);
  std::string result;
  for (const char c : join(lines, options.get<std::string>("item_sep", ",")))
    result += c == '=' ? options.get<std::string>("kv_sep", "=") : std::string(1, c);
  return result;
}

Node source(const std::string& path, const std::string& schema, const std::string& provider) {
  Node node = Node::make_map();
  node.set("path", Node::make_string(path));
  node.set("schema", Node::make_string(schema));
  node.set("provider", Node::make_string(provider));
  return node;
}

/// The node `key`, which some ${...} may refer to; it is made when the tree has removed it.
Node& place(Node& node, const char* key) {
  Node* child = node.find_direct(key);
  if (child == nullptr || !child->is_map()) child = &node.set(key, Node::make_map());
  return *child;
}

}  // namespace

void fill_hydra(Node& root, const HydraFacts& facts) {
  Node& hydra = place(root, "hydra");
  set_hydra_types(hydra);
  std::vector<std::string> task, own;
  for (const Override& override : facts.overrides)
    (override.is_hydra() ? own : task).push_back(*override.origin.file);
  Node& overrides = place(hydra, "overrides");
  for (auto& [key, texts] : {std::pair("hydra", own), std::pair("task", task)}) {
    Node& list = *overrides.find_direct(key);
    for (const std::string& text : texts) list.list.push_back(Node::make_string(text));
  }

  Node& runtime = place(hydra, "runtime");
  std::error_code error;
  runtime.set("version", Node::make_string(version()));
  runtime.set("version_base", Node::make_string("1.3"));
  runtime.set("cwd", Node::make_string(std::filesystem::current_path(error).string()));
  Node sources = Node::make_list({source("hydra.conf", "pkg", "hydra")});
  for (const std::string& folder : facts.folders)
    sources.list.push_back(source(
        std::filesystem::absolute(folder, error).lexically_normal().string(), "file", "main"));
  runtime.set("config_sources", std::move(sources));
  Node& choices = place(runtime, "choices");
  for (const auto& [group, option] : facts.choices)
    choices.set(group, option == "null" ? Node() : Node::make_string(option));

  Node& job = place(hydra, "job");
  if (const Node* name = job.find_direct("name"); name == nullptr || is_missing(*name))
    job.set("name", Node::make_string(facts.job_name));
  const Node* dirname = job.find("config.override_dirname");
  job.set("override_dirname",
          Node::make_string(
              override_dirname(facts.overrides, dirname == nullptr ? Node::make_map() : *dirname)));
  job.set("config_name", Node::make_string(facts.config_name));
  for (const std::string& name : job.get<std::vector<std::string>>("env_copy", {})) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr)
      throw ConfigError(job.at("env_copy").where() + ": the environment variable '" + name +
                        "' is not set, expected one that is set");
    place(job, "env_set").set(name, Node::make_string(value));
  }
}

void check_hydra_keys(const Node& hydra, const Node& known, const std::string& path) {
  if (!hydra.is_map() || !known.is_map() || known.map.empty()) return;
  for (const auto& [key, child] : hydra.map) {
    const Node* expected = known.find_direct(key);
    if (expected == nullptr) {
      const Origin& place = child.key_origin.file == nullptr ? child.origin : child.key_origin;
      throw ConfigError(place.text() + ": " + path + ": no key '" + key + "'." +
                        suggestion(key, known.keys()));
    }
    check_hydra_keys(child, *expected, path + "." + key);
  }
}

std::vector<std::string> searchpath_of(const Node& primary,
                                       const std::vector<Override>& overrides) {
  const auto chosen = std::ranges::find_if(overrides, [](const Override& one) {
    return one.full_key() == "hydra.searchpath" && one.action == Override::Action::change;
  });
  Node list;
  if (chosen != overrides.end()) {
    list = chosen->values[0];
  } else if (primary.find("hydra.searchpath") != nullptr) {
    list = evaluate(primary, "hydra.searchpath");
  }
  if (list.is_null()) return {};
  const bool texts =
      list.kind == Kind::list &&
      std::ranges::all_of(list.list, [](const Node& item) { return item.kind == Kind::string; });
  if (!texts) {
    throw ConfigError(
        list.origin.text() +
        ": hydra.searchpath must be a list of folders, expected [file://FOLDER, ...]");
  }
  std::vector<std::string> folders;
  for (const Node& item : list.list) {
    const std::string folder =
        item.string.starts_with("file://") ? item.string.substr(7) : item.string;
    if (folder_exists(folder)) {
      folders.push_back(folder);
    } else {
      log::warn("{}: hydra.searchpath: no folder '{}', it is left out{}",
                item.origin.text(),
                folder,
                folder.starts_with("pkg://") ? " (Python packages are not searched)" : "");
    }
  }
  return folders;
}

}  // namespace cytra::config
