// Part of config/composition/hydra_node.h: the types of Hydra's own settings. Source:
// hydra/conf/__init__.py and the conversions of omegaconf/nodes.py.
#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "config/composition/hydra_node.h"
#include "config/composition/merge.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

enum class SettingType {
  text,
  optional_text,
  integer,
  optional_boolean,
  optional_mode,
  texts,
  text_map,
  map
};

struct Setting {
  const char* key;
  SettingType type;
};

// The types of launcher and sweeper depend on their files.
constexpr Setting settings[] = {
    {"run", SettingType::map},
    {"sweep", SettingType::map},
    {"help", SettingType::map},
    {"hydra_help", SettingType::map},
    {"hydra_logging", SettingType::map},
    {"job_logging", SettingType::map},
    {"callbacks", SettingType::map},
    {"overrides", SettingType::map},
    {"job", SettingType::map},
    {"runtime", SettingType::map},
    {"mode", SettingType::optional_mode},
    {"searchpath", SettingType::texts},
    {"run.dir", SettingType::text},
    {"sweep.dir", SettingType::text},
    {"sweep.subdir", SettingType::text},
    {"help.app_name", SettingType::text},
    {"help.header", SettingType::text},
    {"help.footer", SettingType::text},
    {"help.template", SettingType::text},
    {"hydra_help.hydra_help", SettingType::text},
    {"hydra_help.template", SettingType::text},
    {"output_subdir", SettingType::optional_text},
    {"overrides.hydra", SettingType::texts},
    {"overrides.task", SettingType::texts},
    {"job.name", SettingType::text},
    {"job.chdir", SettingType::optional_boolean},
    {"job.override_dirname", SettingType::text},
    {"job.id", SettingType::text},
    {"job.num", SettingType::integer},
    {"job.config_name", SettingType::optional_text},
    {"job.env_set", SettingType::text_map},
    {"job.env_copy", SettingType::texts},
    {"job.config.override_dirname.kv_sep", SettingType::text},
    {"job.config.override_dirname.item_sep", SettingType::text},
    {"job.config.override_dirname.exclude_keys", SettingType::texts},
    {"runtime.choices", SettingType::map},
};

const char* expected(SettingType type) {
  constexpr const char* names[] = {"text",
                                   "text or null",
                                   "an integer",
                                   "true, false or null",
                                   "RUN or MULTIRUN",
                                   "a list of texts",
                                   "a map of texts",
                                   "a map"};
  return names[static_cast<int>(type)];
}

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
      return std::ranges::find(words, word) != words.end();
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

bool convert(Node& node, SettingType type) {
  if (is_missing(node) || is_reference(node)) return true;
  switch (type) {
    case SettingType::text:
      return make_text(node);
    case SettingType::optional_text:
      return node.is_null() || make_text(node);
    case SettingType::integer:
      return make_integer(node);
    case SettingType::optional_boolean:
      return node.is_null() || make_boolean(node);
    case SettingType::optional_mode:
      return node.is_null() || make_mode(node);
    case SettingType::texts:
      return node.kind == Kind::list && std::ranges::all_of(node.list, make_text);
    case SettingType::text_map:
      return node.is_map() &&
             std::ranges::all_of(node.map, [](auto& entry) { return make_text(entry.second); });
    default:
      return node.is_map();
  }
}

}  // namespace

void set_hydra_types(Node& hydra) {
  for (const auto& [key, type] : settings) {
    Node* node = hydra.find(key);
    if (node == nullptr)
      throw ConfigError(hydra.origin.text() + ": hydra." + key + " is gone, expected " +
                        expected(type));
    const std::string found = plain_text(*node).substr(0, 200);
    if (!convert(*node, type)) {
      throw ConfigError(node->origin.text() + ": hydra." + key + ": expected " + expected(type) +
                        ", got " + found);
    }
  }
}

}  // namespace cytra::config
