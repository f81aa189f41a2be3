#include "cli/inspect.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/table.h"
#include "config/json.h"
#include "config/keys.h"
#include "config/run_config.h"

namespace cytra::cli {
namespace {

using config::Kind;
using config::Node;

/// Escapes text that looks like ${...} after resolving, so that it is not resolved again.
void escape_references(Node& node) {
  if (node.kind == Kind::string) {
    for (std::size_t at = 0; (at = node.string.find("${", at)) != std::string::npos;) {
      std::size_t bars = at;
      while (bars > 0 && node.string[bars - 1] == '\\') --bars;
      node.string.insert(at, at - bars + 1, '\\');
      at += at - bars + 3;
    }
  }
  for (Node& item : node.list) escape_references(item);
  for (auto& [key, child] : node.map) escape_references(child);
}

/// Resolves the leaves of a node; values that only a run or a job of a sweep knows stay as
/// written.
void resolve_leaves(const Node& root, const std::string& key, Node& node) {
  for (auto& [name, child] : node.map) resolve_leaves(root, key + "." + name, child);
  if (node.kind != Kind::string) return;
  try {
    Node value = config::evaluate(root, key);
    escape_references(value);
    node = std::move(value);
  } catch (const ConfigError&) {
  }
}

/// Formats rows as columns, the first row underlined.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> lines = aligned(rows);
  lines.insert(lines.begin() + 1, std::string(lines[0].size(), '-'));
  return join(lines, "\n") + "\n";
}

std::string defaults_text(const config::Composition& composition) {
  std::vector<std::vector<std::string>> rows{
      {"config", "package", "_self_", "parent", "chosen at"}};
  for (const config::IncludedFile& file : composition.files) {
    rows.push_back({file.path,
                    file.package,
                    file.is_self ? "yes" : "",
                    file.parent,
                    file.chosen.file == nullptr ? "" : file.chosen.text()});
  }
  return table(rows);
}

std::string groups_text(const config::Composer& composer, const config::Composition& composition) {
  std::vector<std::vector<std::string>> rows{{"group", "chosen", "options"}};
  for (const config::Group& group : composer.groups()) {
    std::string chosen;
    for (const auto& [key, option] : composition.choices) {
      if (key.substr(0, key.find('@')) != group.name) continue;
      chosen += (chosen.empty() ? "" : ", ") + option;
      if (key.size() > group.name.size()) chosen += key.substr(group.name.size());
    }
    rows.push_back({group.name, chosen, join(group.options, ", ")});
  }
  return table(rows);
}

std::string searchpath_text(const config::Composition& composition) {
  std::vector<std::vector<std::string>> rows{{"provider", "path"}};
  for (const Node& source : composition.root.at("hydra.runtime.config_sources").list) {
    rows.push_back({source.get<std::string>("provider"),
                    source.get<std::string>("schema") + "://" + source.get<std::string>("path")});
  }
  return table(rows);
}

/// The value in one line of at most 60 characters.
std::string short_text(const Node& node) {
  std::string text = node.kind == Kind::string ? config::to_yaml(node) : config::to_json(node);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

}  // namespace

std::string composed_text(const config::Composition& composition, const Arguments& arguments) {
  Node root = composition.root;
  const bool only_hydra = arguments.cfg == "hydra";
  Node hydra = root.at("hydra");
  if (arguments.resolve) resolve_leaves(root, "hydra", hydra);
  Node job = arguments.resolve && !only_hydra ? config::job_config(root)
                                              : config::without_hydra(std::move(root));
  if (arguments.resolve) escape_references(job);
  Node shown = Node::make_map();
  if (arguments.cfg != "job") shown.set("hydra", std::move(hydra));
  if (!only_hydra) {
    for (auto& entry : job.map) shown.map.push_back(std::move(entry));
  }
  if (arguments.package.empty() || arguments.package == "_global_")
    return arguments.json ? config::to_plain_json(shown) + "\n" : config::to_yaml(shown);
  const Node* part = shown.find(arguments.package);
  if (part == nullptr) {
    config::Leaves leaves;
    std::vector<std::string> keys = shown.keys();
    config::add_leaves("", shown, leaves);
    for (const auto& [key, leaf] : leaves) keys.push_back(key.substr(0, key.rfind('.')));
    throw ConfigError("--package {}: no such key in this configuration.{}",
                      arguments.package,
                      suggestion(arguments.package, keys));
  }
  if (arguments.json) return config::to_plain_json(*part) + "\n";
  return fmt::format("# @package {}\n{}", arguments.package, config::to_yaml(*part));
}

std::string info_text(const config::Composer& composer,
                      const config::Composition& composition,
                      const std::string& what) {
  const std::vector<std::string> known{"defaults", "groups", "config", "searchpath", "all"};
  if (!contains(known, what)) {
    throw ConfigError(
        "--info {}: expected one of {}.{}", what, join(known, ", "), suggestion(what, known));
  }
  std::string text;
  const auto add = [&](const char* name, const auto& make) {
    if (what == name) text = make();
    if (what == "all")
      text += fmt::format("{}== {} ==\n{}", text.empty() ? "" : "\n", name, make());
  };
  add("defaults", [&] { return defaults_text(composition); });
  add("groups", [&] { return groups_text(composer, composition); });
  add("searchpath", [&] { return searchpath_text(composition); });
  add("config", [&] { return config::to_yaml(composition.root); });
  return text;
}

std::string explain_text(const config::Composer& composer,
                         const std::string& primary,
                         const std::vector<std::string>& overrides,
                         const std::string& key) {
  const std::vector<config::Change> changes = composer.explain(primary, overrides, key);
  config::Composition composition = composer.load(primary, overrides);
  config::set_output_dir(composition.root);
  std::vector<std::string> keys;
  for (const config::Change& change : changes) {
    if (!contains(keys, change.key)) keys.push_back(change.key);
  }
  std::string text;
  for (const std::string& one : keys) {
    const Node* final_value = composition.root.find(one);
    text += one;
    if (final_value == nullptr) {
      text += " no longer exists\n";
    } else if (final_value->kind == Kind::string &&
               final_value->string.find("${") != std::string::npos) {
      text += fmt::format(" = {}   (from {})\n",
                          short_text(config::evaluate(composition.root, one)),
                          final_value->string);
    } else {
      text += fmt::format(" = {}\n", short_text(*final_value));
    }
    for (const config::Change& change : changes) {
      if (change.key != one) continue;
      std::string by = change.value.origin.text();
      if (change.removed) by = change.file.empty() ? change.chosen.text() : change.file;
      text +=
          fmt::format("  {:<24} {}", change.removed ? "(removed)" : short_text(change.value), by);
      if (!change.file.empty() && change.chosen.file != nullptr)
        text += fmt::format("   ({} chosen at {})", change.file, change.chosen.text());
      text += "\n";
    }
  }
  return text;
}

std::string diff_text(const config::Composition& composition,
                      const std::string& other,
                      bool resolve) {
  const Node ours =
      resolve ? config::job_config(composition.root) : config::without_hydra(composition.root);
  const Node theirs = config::load_run_config(other, resolve);
  config::Leaves our_leaves, their_leaves;
  config::add_leaves("", ours, our_leaves);
  config::add_leaves("", theirs, their_leaves);
  std::string text;
  std::size_t count = 0;
  const auto add = [&](const std::string& line, const Node& place) {
    text += fmt::format("{:<60} {}\n", line, place.origin.text());
    ++count;
  };
  for (const auto& [key, leaf] : our_leaves) {
    const Node* before = theirs.find(key);
    if (before == nullptr) {
      add(fmt::format("+ {}: {}", key, short_text(*leaf)), *leaf);
    } else if (!config::equal(*before, *leaf)) {
      add(fmt::format("~ {}: {} -> {}", key, short_text(*before), short_text(*leaf)), *leaf);
    }
  }
  for (const auto& [key, leaf] : their_leaves) {
    if (ours.find(key) == nullptr) add(fmt::format("- {}: {}", key, short_text(*leaf)), *leaf);
  }
  return text + (count == 0   ? "no difference\n"
                 : count == 1 ? "1 difference\n"
                              : fmt::format("{} differences\n", count));
}

}  // namespace cytra::cli
