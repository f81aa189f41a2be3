// Makes a JSON Schema (draft-07) from what visit() says. Each value has one flat schema (`type`
// lists the allowed types, `pattern` applies to text only), because editors explain those better
// than anyOf.
#include "config/json_schema.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/strings.h"

namespace cytra::config {
namespace {

using Type = OptionInfo::Type;
using Form = Part::Form;

constexpr const char* kReference = "\\$\\{|^\\?\\?\\?$";  // ${...} or ???
/// Groups whose files belong to the root (`# @package _global_`).
constexpr const char* kWholeTree[] = {"experiment", "debug", "local", "hparams_search"};
constexpr const char* kOwnKeys = "^_(.*[^_])?$";  // _aux: the user's

Node text(const std::string& value) {
  return Node::make_string(value);
}
Node object(std::vector<std::pair<std::string, Node>> entries) {
  Node node = Node::make_map();
  node.map = std::move(entries);
  return node;
}
Node reference() {
  return object({{"type", text("string")}, {"pattern", text(kReference)}});
}
Node type_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return text(names.front());
  Node node = Node::make_list();
  for (const std::string& name : names) node.list.push_back(text(name));
  return node;
}
Node any_of(std::vector<Node> schemas) {
  return object({{"anyOf", Node::make_list(std::move(schemas))}});
}
Node use(const std::string& name) {
  return object({{"$ref", text("#/definitions/" + name)}});
}
/// The name of a kind's definition: a $ref may not contain a blank.
std::string name_of(const Components& components) {
  std::string name = components.kind;
  std::ranges::replace(name, ' ', '_');
  return name;
}

class Writer {
 public:
  /// The schema of a primary config or an experiment: the whole tree, or parts of it.
  Node whole_tree(const std::vector<OptionInfo>& sections) {
    Node own = object({{"not", object({{"type", text("object")}})},
                       {"description",
                        text("a variable of yours, for ${...}; a map needs a name that begins "
                             "with _")}});
    return object({{"type", type_of({"object", "null"})},
                   {"properties", properties(sections, true)},
                   {"patternProperties", object({{kOwnKeys, Node::make_boolean(true)}})},
                   {"additionalProperties", std::move(own)}});
  }
  /// The schema of a file of the group that holds this option's values.
  Node file(const OptionInfo& option) {
    Node schema;
    if (option.type == Type::options) {
      schema = map_of(properties(option.options.describe(), true));
    } else if (option.type == Type::part && option.part.form == Form::changes) {
      schema = map_of(properties(option.part.options.describe(), true));
    } else if (option.type == Type::part && option.part.form == Form::map) {
      schema = part(option.part);
      schema.set("properties", properties({}, true));
    } else if (option.type == Type::part) {
      schema = component(*option.part.components, true);
    }
    schema.set("type", type_of({"object", "null"}));
    schema.set("description", text(option.doc));
    return schema;
  }
  Node definitions() { return std::move(definitions_); }

 private:
  /// The schema of a map's options. `is_file`: the map is a whole file, which may have a defaults
  /// list.
  Node properties(const std::vector<OptionInfo>& options, bool is_file) {
    Node result = object({});
    if (is_file) {
      result.set("defaults",
                 object({{"type", text("array")},
                         {"description", text("other files that this one is composed of")}}));
    }
    for (const OptionInfo& option : options) result.set(option.name, value(option));
    return result;
  }

  /// The map itself, without its `type`.
  Node map_of(Node properties) {
    const Node flag = object({{"type", type_of({"boolean", "string"})},
                              {"description", text("of Hydra's instantiate; no effect here")}});
    for (const char* key : {"_partial_", "_recursive_"}) properties.set(key, flag);
    properties.set("_convert_", object({{"type", text("string")}}));
    if (!properties.has("_target_")) properties.set("_target_", object({{"type", text("string")}}));
    return object({{"properties", std::move(properties)},
                   {"patternProperties", object({{kOwnKeys, Node::make_boolean(true)}})},
                   {"additionalProperties", Node::make_boolean(false)}});
  }

  Node map_or_reference(Node schema, bool nullable = false) {
    schema.set("type",
               nullable ? type_of({"object", "string", "null"}) : type_of({"object", "string"}));
    schema.set("pattern", text(kReference));
    return schema;
  }

  /// The schema of a component of a kind. `_target_` may come from another file, so without it the
  /// options of every component of the kind are allowed.
  Node component(const Components& components, bool is_file) {
    Node all = object({});
    Node choices = Node::make_list();
    for (const auto& [name, type] : components.types) {
      const Node own = properties(type.describe(), is_file);
      for (const auto& [key, schema] : own.map) {
        Node* known = all.find_direct(key);
        if (known == nullptr) {
          all.set(key, schema);
        } else if (!equal(*known, schema)) {
          if (known->map.size() > 1 || !known->has("anyOf")) *known = any_of({*known});
          Node& several = *known->find_direct("anyOf");
          const bool is_new = std::ranges::none_of(
              several.list, [&s = schema](const Node& n) { return equal(n, s); });
          if (is_new) several.list.push_back(schema);
        }
      }
      Node then;
      if (is_file) {
        then = map_of(own);
      } else {
        then = use(name_of(components) + "." + name);
        definition(name_of(components) + "." + name, [&] { return map_of(own); });
      }
      choices.list.push_back(object({{"if", names(name)}, {"then", std::move(then)}}));
    }
    all.set("_target_", target(components));
    Node schema = map_or_reference(map_of(std::move(all)));
    if (!choices.list.empty()) schema.set("allOf", std::move(choices));
    return schema;
  }

  /// The schema of an option's value, with its help as hover text.
  Node value(const OptionInfo& option) {
    Node schema = bare_value(option);
    schema.set("description", text(option.doc));
    const bool has_default = !option.required && option.type != Type::options &&
                             option.type != Type::part && option.type != Type::any &&
                             option.type != Type::unused;
    if (has_default && (option.nullable || !option.value.is_null()))
      schema.set("default", option.value);
    return schema;
  }

  Node bare_value(const OptionInfo& option) {
    switch (option.type) {
      case Type::any:
      case Type::unused:
        return object({});
      case Type::part:
        return part(option.part);
      case Type::options: {
        Node one =
            map_or_reference(map_of(properties(option.options.describe(), false)), option.nullable);
        if (option.lists == 0) return one;
        return any_of({object({{"type", text("array")}, {"items", one}}), one});
      }
      default:
        return plain_value(option, option.lists);
    }
  }

  void definition(const std::string& name, auto make) {
    if (definitions_.find_direct(name) != nullptr) return;
    definitions_.set(name, object({}));  // a kind may hold itself
    Node made = make();
    definitions_.set(name, std::move(made));
  }
  Node kind(const Components& components) {
    definition(name_of(components), [&] { return component(components, false); });
    return use(name_of(components));
  }
  /// The schema of a list's item. An item is not merged: required options must be in it.
  Node item(const Components& components) {
    const std::string name = "item." + name_of(components);
    definition(name, [&] {
      Node rules = Node::make_list(
          {kind(components), object({{"required", Node::make_list({text("_target_")})}})});
      for (const auto& [component, type] : components.types) {
        Node required = Node::make_list();
        for (const OptionInfo& option : type.describe()) {
          if (option.required) required.list.push_back(text(option.name));
        }
        if (required.list.empty()) continue;
        rules.list.push_back(
            object({{"if", names(component)}, {"then", object({{"required", required}})}}));
      }
      return object({{"allOf", std::move(rules)}});
    });
    return use(name);
  }
  static Node target(const Components& components) {
    const std::vector<std::string> own = components.names();
    Node choices = Node::make_list();
    for (const std::string& name : own) choices.list.push_back(text(name));
    Node python =
        object({{"type", text("string")},
                {"pattern",
                 text("^(torch|monai|cyto_dl|lightning|pytorch_lightning|cytra)\\.(.*\\.)?(" +
                      join(own, "|") + ")$")}});
    Node schema = any_of({object({{"enum", std::move(choices)}}), std::move(python), reference()});
    schema.set("description", text("the " + components.kind + ", by its own or its Python name"));
    return schema;
  }
  /// A condition that holds for a map whose _target_ is `name`.
  static Node names(const std::string& name) {
    return object({{"required", Node::make_list({text("_target_")})},
                   {"properties",
                    object({{"_target_", object({{"pattern", text("(^|\\.)" + name + "$")}})}})}});
  }

  Node part(const Part& part) {
    switch (part.form) {
      case Form::one:
        return object({{"allOf", Node::make_list({kind(*part.components)})}});
      case Form::optional:
        return any_of({object({{"type", text("null")}}), kind(*part.components)});
      case Form::list:
        return object({{"type", type_of({"array", "string", "null"})},
                       {"pattern", text(kReference)},
                       {"items", item(*part.components)}});
      case Form::map:
        return object({{"type", type_of({"object", "string", "null"})},
                       {"pattern", text(kReference)},
                       {"additionalProperties",
                        any_of({object({{"type", text("null")}}), kind(*part.components)})}});
      case Form::changes:
        break;
    }
    std::vector<OptionInfo> options = part.options.describe();
    for (OptionInfo& option : options) {
      option.nullable = true;
      option.value = Node();
    }
    return map_or_reference(map_of(properties(options, false)), true);
  }

  Node plain_value(const OptionInfo& option, int lists) {
    if (!option.choices.empty()) {
      Node choices = Node::make_list();
      for (const std::string& choice : option.choices) {
        choices.list.push_back(text(choice));
        if (!choice.empty() && choice.size() < 10 &&
            choice.find_first_not_of("0123456789") == std::string::npos)
          choices.list.push_back(Node::make_integer(std::stoi(choice)));  // precision: 32
      }
      if (option.nullable) choices.list.push_back(Node());
      return any_of({object({{"enum", std::move(choices)}}), reference()});
    }
    std::vector<std::string> types;
    if (option.type == Type::boolean) types = {"boolean", "string"};
    if (option.type == Type::integer) types = {"integer", "string"};
    if (option.type == Type::number) types = {"number", "string"};
    if (option.type == Type::text) types = {"string", "integer"};
    if (lists > 0) types.insert(types.begin(), "array");
    // Null is not allowed in an inner list.
    if (lists == option.lists && (option.nullable || lists > 0)) types.emplace_back("null");
    Node schema = object({{"type", type_of(types)}});
    if (option.low) {
      schema.set("minimum", Node::make_real(*option.low));
      if (std::isfinite(*option.high)) schema.set("maximum", Node::make_real(*option.high));
    }
    if (option.type != Type::text) schema.set("pattern", text(kReference));
    if (lists > 0) schema.set("items", plain_value(option, lists - 1));
    if (!option.keyword.empty())
      return any_of({std::move(schema), object({{"const", text(option.keyword)}})});
    return schema;
  }

  Node definitions_ = object({});
};

/// The option whose values the folder `group` holds: a section of the tree, or below one
/// ("transforms" is data.transforms).
std::optional<OptionInfo> find_group(const std::vector<OptionInfo>& options,
                                     const std::string& group,
                                     bool enter) {
  for (const OptionInfo& option : options) {
    const bool is_map = option.type == Type::options || option.type == Type::part ||
                        option.type == Type::any || option.type == Type::unused;
    if (option.name == group && is_map) return option;
  }
  for (const OptionInfo& option : options) {
    if (!enter) break;
    for (const auto& [name, type] : option.below()) {
      if (auto found = find_group(type.describe(), group, false)) return found;
    }
  }
  return std::nullopt;
}

[[noreturn]] void fail_unknown_group(const std::vector<OptionInfo>& sections,
                                     const std::string& group) {
  std::vector<std::string> known(std::begin(kWholeTree), std::end(kWholeTree));
  for (const OptionInfo& option : sections) {
    if (option.type == Type::options || option.type == Type::part) known.push_back(option.name);
  }
  const std::string shown = group.substr(0, 200);
  throw ConfigError("no group '" + shown + "' to describe, expected a folder of configs." +
                    suggestion(shown, known));
}

}  // namespace

std::string json_schema(const OptionsType& root, const std::string& group) {
  Writer writer;
  const std::vector<OptionInfo> sections = root.describe();
  Node schema;
  if (group.empty() || std::ranges::find(kWholeTree, group) != std::end(kWholeTree)) {
    schema = writer.whole_tree(sections);
  } else if (const auto found = find_group(sections, group, true)) {
    schema = writer.file(*found);
  } else {
    fail_unknown_group(sections, group);
  }
  Node result = object({{"$schema", text("http://json-schema.org/draft-07/schema#")},
                        {"title", text(group.empty() ? "configuration" : group)}});
  for (auto& [key, value] : schema.map) result.set(key, std::move(value));
  result.set("definitions", writer.definitions());
  return to_json(result) + "\n";
}

}  // namespace cytra::config
