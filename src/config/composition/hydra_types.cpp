// Part of config/composition/hydra_node.h: the types of Hydra's own settings. Source:
// hydra/conf/__init__.py and the conversions of omegaconf/nodes.py.
#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "config/composition/hydra_node.h"
#include "config/composition/merge.h"
#include "config/text/cast.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

bool make_text(Node& node) {
  if (node.kind == Kind::string) return true;
  if (node.is_null() || node.is_map() || node.kind == Kind::list) return false;
  node.string = python_str(node);
  node.kind = Kind::string;
  return true;
}

bool make_integer(Node& node) {
  if (node.kind != Kind::string) return node.kind == Kind::integer;
  node.kind = Kind::integer;
  return read_python_integer(node.string, node.integer);
}

bool make_boolean(Node& node) {
  if (node.kind == Kind::string) {
    const std::string word = in_small_letters(node.string);
    const auto is_one_of = [&](std::initializer_list<const char*> words) {
      return contains(words, word);
    };
    int64_t number = 0;
    const bool is_number = read_python_integer(word, number);
    node.boolean = is_number ? number != 0 : is_one_of({"yes", "y", "on", "true"});
    if (!is_number && !node.boolean && !is_one_of({"no", "n", "off", "false"})) return false;
  } else if (node.kind == Kind::integer) {
    node.boolean = node.integer != 0;
  } else if (node.kind != Kind::boolean) {
    return false;
  }
  node.kind = Kind::boolean;
  return true;
}

bool make_mode(Node& node) {
  if (node.kind == Kind::integer && (node.integer == 1 || node.integer == 2)) {
    node.string = node.integer == 1 ? "RUN" : "MULTIRUN";
    node.kind = Kind::string;
  }
  return node.kind == Kind::string && (node.string == "RUN" || node.string == "MULTIRUN");
}

/// A type with the settings that have it. The types of launcher and sweeper depend on their files.
struct SettingType {
  const char* name;
  bool (*convert)(Node& node);  // false: it can't be one
  std::vector<const char*> keys;
};

const SettingType kTypes[] = {
    {"a map",
     [](Node& node) { return node.is_map(); },
     {"run",
      "sweep",
      "help",
      "hydra_help",
      "hydra_logging",
      "job_logging",
      "callbacks",
      "overrides",
      "job",
      "runtime",
      "runtime.choices"}},
    {"RUN or MULTIRUN", [](Node& node) { return node.is_null() || make_mode(node); }, {"mode"}},
    {"a list of texts",
     [](Node& node) {
       return node.kind == Kind::list && std::ranges::all_of(node.list, make_text);
     },
     {"searchpath",
      "overrides.hydra",
      "overrides.task",
      "job.env_copy",
      "job.config.override_dirname.exclude_keys"}},
    {"text",
     make_text,
     {"run.dir",
      "sweep.dir",
      "sweep.subdir",
      "help.app_name",
      "help.header",
      "help.footer",
      "help.template",
      "hydra_help.hydra_help",
      "hydra_help.template",
      "job.name",
      "job.override_dirname",
      "job.id",
      "job.config.override_dirname.kv_sep",
      "job.config.override_dirname.item_sep"}},
    {"text or null",
     [](Node& node) { return node.is_null() || make_text(node); },
     {"output_subdir", "job.config_name"}},
    {"true, false or null",
     [](Node& node) { return node.is_null() || make_boolean(node); },
     {"job.chdir"}},
    {"an integer", make_integer, {"job.num"}},
    {"a map of texts",
     [](Node& node) {
       return node.is_map() &&
              std::ranges::all_of(node.map, [](auto& entry) { return make_text(entry.second); });
     },
     {"job.env_set"}},
};

}  // namespace

void set_hydra_types(Node& hydra) {
  for (const auto& [name, convert, keys] : kTypes) {
    for (const std::string key : keys) {
      Node* node = hydra.find(key);
      if (node == nullptr)
        throw ConfigError("{}: hydra.{} is gone, expected {}", hydra.origin.text(), key, name);
      const std::string found = plain_text(*node).substr(0, 200);
      if (is_missing(*node) || is_reference(*node) || convert(*node)) continue;
      throw ConfigError("{}: hydra.{}: expected {}, got {}", node->origin.text(), key, name, found);
    }
  }
}

}  // namespace cytra::config
