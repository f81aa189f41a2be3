#include "config/options.h"

#include <algorithm>
#include <cctype>

#include "base/other_names.h"
#include "base/strings.h"
#include "config/schema.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

/// Keys of Hydra's instantiate() that change nothing here.
const std::vector<std::string>& hydra_keys() {
  static const std::vector<std::string> keys{"_target_", "_partial_", "_convert_", "_recursive_"};
  return keys;
}

/// A key like `_aux` holds values for others to refer to, as in CytoDL.
bool is_own(const std::string& key) {
  return key == "_" || (key.size() > 1 && key.front() == '_' && key.back() != '_');
}

bool is_among(const std::string& word, const std::vector<std::string>& words) {
  return contains(words, word);
}

std::string shortened(const std::string& text) {
  return text.substr(0, std::min<std::size_t>(text.find('\n'), 200));
}

std::string got(const Node& node) {
  switch (node.kind) {
    case Kind::list:
    case Kind::map:
      return node.kind == Kind::list ? "a list" : "a map";
    case Kind::string:
      if (node.string == "???" && !node.quoted) return "??? (it must be set)";
      return "'" + shortened(node.string) + "'";
    default:
      return plain_text(node);
  }
}

/// Whether the command line set the value.
bool is_typed(const Node& node) {
  return node.origin.file != nullptr && node.origin.line == 0;
}

void check_component(const Node& node, const Components& components, Problems& problems) {
  if (!node.is_map()) {
    problems.add(
        node,
        "expected " + with_article(components.kind) + " (a map with _target_), got " + got(node));
    return;
  }
  const Node* target = node.find_direct("_target_");
  try {
    components.types.at(components.name_of(node)).check(node, problems);
  } catch (const ConfigError& error) {
    problems.add(target == nullptr ? node : *target, error.what());
  }
}

void check_part(const Node& node, const Part& part, Problems& problems) {
  using Form = Part::Form;
  if (node.is_null()) return;  // the reader reports a missing `one`
  if (part.form == Form::one || part.form == Form::optional) {
    check_component(node, *part.components, problems);
  } else if (part.form == Form::changes) {
    Node set = node;
    std::erase_if(set.map, [](const auto& entry) { return entry.second.is_null(); });
    part.options.check(set, problems);
  } else if (node.kind != (part.form == Form::list ? Kind::list : Kind::map)) {
    problems.add(node,
                 std::string("expected a ") + (part.form == Form::list ? "list" : "map") + " of " +
                     part.components->kind + "s, got " + got(node));
  } else {
    for (const Node& item : node.list) check_component(item, *part.components, problems);
    for (const auto& [name, item] : node.map) {
      if (!item.is_null() && !is_own(name)) check_component(item, *part.components, problems);
    }
  }
}

}  // namespace

std::string choice_problem(const std::optional<std::string>& value, const Choices& choices) {
  if (!value || is_among(*value, choices)) return "";
  const std::string given = shortened(*value);
  return "expected one of " + join(choices, ", ") + ", got '" + given + "'." +
         near_hint(given, choices);
}

std::string number_problem(double value, double low, double high) {
  if (value >= low && value <= high) return "";  // NaN fails too
  return "expected a value from " + bound_text(low) + " to " + bound_text(high) + ", got " +
         bound_text(value);
}

void throw_bad_value(const Node& node, const std::string& expected) {
  throw ConfigError(node.where() + ": expected " + expected + ", got " + got(node));
}

void OptionReader::operator()(const char* key,
                              int64_t& field,
                              const char* doc,
                              const Keyword& keyword) {
  const Node* child = node_.find_direct(key);
  if (child == nullptr || child->kind != Kind::string)
    return (*this)(key, field, doc, keyword.low, keyword.high);
  known_.emplace_back(key);
  std::string word = child->string;
  for (char& letter : word)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (word != keyword.word)
    return fail(*child,
                std::string("expected an integer or ") + keyword.word + ", got '" +
                    shortened(child->string) + "'");
  field = keyword.value;
}

void OptionReader::operator()(const char* key, Node& field, const char* /*doc*/, const Part& part) {
  const Node* child = take(key, field);
  if (part.form == Part::Form::one && (child == nullptr || child->is_null())) return require(key);
  if (child != nullptr) check_part(*child, part, problems_);
}

void OptionReader::operator()(const char* key, const Unused& unused, const char* doc) {
  known_.emplace_back(key);
  const Node* child = node_.find_direct(key);
  if (child == nullptr || child->is_null()) return;
  if (unused.same.empty()) {  // files may carry it; a user who types it expects an effect
    if (is_typed(*child)) problems_.note(*child, std::string("no effect here (") + doc + ")");
    return;
  }
  const std::string value = shortened(plain_text(*child));
  if (!is_among(value, unused.same) && unused.same.front() != "*")
    problems_.note(*child, value + " has no effect here (" + doc + ")");
}

void OptionReader::fail(const Node& place, const std::string& what) {
  if (what.empty()) return;
  ok_ = false;
  problems_.add(place, what);
}

bool OptionReader::is_map() {
  if (!node_.is_map()) fail(node_, "expected a map of options, got " + got(node_));
  return ok_;
}

bool OptionReader::finish() {
  for (const auto& [key, child] : node_.map) {
    if (is_among(key, known_) || is_among(key, hydra_keys()) || is_own(key)) continue;
    if (!variables_.empty() && is_among(child.path, variables_)) continue;
    // The key is the user's own, such as n in +n=1,2,3 for repeats by --multirun; a key that looks
    // like one of ours is a mistake.
    if (!variables_.empty() && is_typed(child) && nearest(key, known_).empty()) {
      if (!node_.path.empty())  // tell_unread() reports keys of the top level
        problems_.note(child, "no effect, nothing reads it");
      continue;
    }
    if (key == "_args_") {
      fail(child, "arguments by position are not supported, name them");
      continue;
    }
    const std::string name = shortened(key);
    const bool is_hydra = name.size() > 1 && name.front() == '_' && name.back() == '_';
    Node place;  // the key, not its value
    place.origin = child.key_origin.file == nullptr ? child.origin : child.key_origin;
    place.path = child.path;
    fail(place,
         "unknown key '" + name + "', expected one this part has." +
             suggestion(name, is_hydra ? hydra_keys() : known_));
    if (problems_.full()) break;
  }
  return ok_;
}

void OptionReader::require(const char* key) {
  const Node* child = node_.find_direct(key);
  if (child != nullptr && !child->is_null() && !(child->kind == Kind::list && child->list.empty()))
    return;  // wrong, and reported
  fail(node_, std::string("'") + key + "' is missing, expected a value.");
}

}  // namespace cytra::config
