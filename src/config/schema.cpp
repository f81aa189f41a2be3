#include "config/schema.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/table.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

using Type = OptionInfo::Type;
using Form = Part::Form;
using Row = std::vector<std::string>;

constexpr std::size_t kLongest = 500;  // letters of a place to describe

std::string default_text(const OptionInfo& option) {
  if (option.required) return "required";
  if (option.type == Type::options || option.type == Type::part || option.type == Type::unused)
    return "";
  if (option.type == Type::text && option.lists == 0 && !option.value.is_null())
    return option.value.string.empty() ? "''" : option.value.string;
  return to_json(option.value);
}

std::string options_text(const std::vector<OptionInfo>& options) {
  std::vector<Row> rows{{"name", "type", "default", "range", ""}};
  for (const OptionInfo& option : options) {
    rows.push_back(
        {option.name, option.type_text(), default_text(option), option.range_text(), option.doc});
  }
  if (options.empty()) return "  no options\n";
  return "  " + join(aligned(rows), "\n  ") + "\n";
}

std::string component_text(const Components& components, const std::string& name) {
  return name + " (" + components.kind + ")\n" + options_text(components.types.at(name).describe());
}

std::string kind_text(const Components& components) {
  std::string text = components.kind + ", by _target_: " + join(components.names(), ", ") + "\n";
  for (const std::string& name : components.names())
    text += "\n" + component_text(components, name);
  return text;
}

/// An option with the part it belongs to.
struct Found {
  std::string owner;  // "AdamW", or "" in a section
  OptionInfo option;
};

std::vector<Found> with_owner(const OptionsType& type, const std::string& owner) {
  std::vector<Found> result;
  for (OptionInfo& option : type.describe()) result.push_back({owner, std::move(option)});
  return result;
}

/// The options below an option: those of a section, or of every component that may be there.
std::vector<Found> below(const OptionInfo& option) {
  std::vector<Found> result;
  for (const auto& [name, type] : option.below()) {
    for (Found& one : with_owner(type, name)) result.push_back(std::move(one));
  }
  return result;
}

/// Every option that the dotted `place` can mean. Items of lists (`train.0`, `train[0]`) and the
/// user's own names in maps (`callbacks.my_checkpoint`) are skipped.
std::vector<Found> find_place(const OptionsType& root, const std::string& place) {
  std::vector<std::string> steps;
  for (const std::string& step : split(place, '.')) steps.push_back(step.substr(0, step.find('[')));
  std::vector<Found> level = with_owner(root, ""), found;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    found.clear();
    for (const Found& one : level) {
      if (one.option.name == steps[i]) found.push_back(one);
    }
    if (found.empty() || i + 1 == steps.size()) break;
    const OptionInfo& first = found.front().option;
    const bool is_number = steps[i + 1].find_first_not_of("0123456789") == std::string::npos;
    const bool is_map = first.type == Type::part && first.part.form == Form::map;
    if (is_map || is_number) ++i;
    if (i + 1 >= steps.size()) break;
    level.clear();
    for (const Found& one : found) {
      for (Found& next : below(one.option)) level.push_back(std::move(next));
    }
  }
  return found;
}

std::string found_text(const std::string& place, const std::vector<Found>& found) {
  const OptionInfo& first = found.front().option;
  std::string text = place + ": " + first.doc + "\n";
  if (first.type == Type::options) return text + options_text(first.options.describe());
  if (first.type == Type::part) {
    if (first.part.form == Form::changes) return text + options_text(first.part.options.describe());
    return text + first.type_text() + "\n\n" + kind_text(*first.part.components);
  }
  // Components that declare the option in the same way share a table.
  std::vector<std::pair<std::string, std::set<std::string>>> tables;
  for (const Found& one : found) {
    const std::string own = options_text({one.option});
    const auto same =
        std::ranges::find_if(tables, [&](const auto& entry) { return entry.first == own; });
    if (same == tables.end()) {
      tables.push_back({own, {one.owner}});
    } else {
      same->second.insert(one.owner);
    }
  }
  for (const auto& [own, owners] : tables) {
    const std::string names = join({owners.begin(), owners.end()}, ", ");
    text += (names.empty() ? "" : "\n" + names + "\n") + own;
  }
  return text;
}

}  // namespace

std::string with_article(const std::string& noun) {
  return (std::string("aeiou").find(noun.front()) == std::string::npos ? "a " : "an ") + noun;
}

std::string bound_text(double value) {
  std::string text = real_text(value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string own_name(const std::string& target) {
  for (const char* module :
       {"torch.", "monai.", "cyto_dl.", "lightning.", "pytorch_lightning.", "cytra."}) {
    if (target.starts_with(module)) return target.substr(target.rfind('.') + 1);
  }
  return target;
}

std::map<std::string, Components>& component_kinds() {
  static std::map<std::string, Components> kinds;
  return kinds;
}

Components& components_of(const std::string& kind) {
  Components& components = component_kinds()[kind];
  components.kind = kind;
  return components;
}

std::vector<std::string> Components::names() const {
  return keys_of(types);
}

std::string Components::name_of(const Node& node) const {
  const Node* target = node.find_direct("_target_");
  if (target == nullptr) {
    throw ConfigError(node.where() + ": no '_target_', expected the name of " + with_article(kind) +
                      ". Choices: " + join(names(), ", ") + ".");
  }
  const auto written = target->as<std::string>();
  if (types.count(written) > 0) return written;
  const std::string name = own_name(written).substr(0, 200);
  if (types.count(name) > 0) return name;
  throw ConfigError(target->where() + ": no " + kind + " '" + name +
                    "', expected a registered one." + suggestion(name, names()));
}

std::map<std::string, OptionsType> OptionInfo::below() const {
  if (type == Type::options) return {{"", options}};
  if (type != Type::part) return {};
  return part.form == Form::changes ? std::map<std::string, OptionsType>{{"", part.options}}
                                    : part.components->types;
}

std::string OptionInfo::type_text() const {
  constexpr const char* names[] = {
      "true or false", "integer", "number", "text", "options", "", "anything", "unused"};
  std::string text = names[static_cast<int>(type)];
  if (type == Type::part) {
    constexpr const char* forms[] = {
        "component: ", "component: ", "list of components: ", "map of components: ", "options"};
    text = forms[static_cast<int>(part.form)];
    if (part.components != nullptr) text += part.components->kind;
  }
  const bool is_plural = type == Type::integer || type == Type::number || type == Type::text;
  for (int i = 0; i < lists; ++i)
    text = (i == 0 ? "list of " : "list of lists of ") +
           (i == 0 ? text + (is_plural ? "s" : "") : text.substr(8));
  const bool or_null = nullable || (type == Type::part && part.form == Form::optional);
  return or_null ? text + " or null" : text;
}

std::string OptionInfo::range_text() const {
  if (!choices.empty()) return join(choices, " | ");
  if (!low) return "";
  const std::string range =
      *high >= 1e9 ? ">= " + bound_text(*low) : bound_text(*low) + " .. " + bound_text(*high);
  return keyword.empty() ? range : range + " | " + keyword;
}

std::string describe_text(const OptionsType& root, const std::string& name) {
  if (name.empty()) return options_text(root.describe());
  if (name.size() <= kLongest) {
    if (const auto found = find_place(root, name); !found.empty()) return found_text(name, found);
    for (const auto& [kind, components] : component_kinds()) {
      if (kind == name) return kind_text(components);
      const std::string own = components.types.count(name) > 0 ? name : own_name(name);
      if (components.types.count(own) > 0) return component_text(components, own);
    }
  }
  std::vector<std::string> known = mapped(root.describe(), &OptionInfo::name);
  for (const auto& [kind, components] : component_kinds()) {
    known.push_back(kind);
    for (const std::string& component : components.names()) known.push_back(component);
  }
  const std::string shown = own_name(name.substr(0, 200));
  throw ConfigError(
      "nothing to describe is called '" + shown +
      "', expected a place in the configuration, a component or a kind of component." +
      suggestion(shown, known));
}

}  // namespace cytra::config
