#include "config/options.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "config/scalar.h"

namespace cytra::config {
namespace {

std::string got(const Node& node) {
  switch (node.kind) {
    case Kind::list:
    case Kind::map:
      return node.kind == Kind::list ? "a list" : "a map";
    case Kind::string:
      if (node.string == "???" && !node.quoted) return "??? (it must be set)";
      return "'" + node.string.substr(0, std::min<std::size_t>(node.string.find('\n'), 200)) + "'";
    default:
      return plain_text(node);
  }
}

/// 1, not 1.0: bounds are written as they are in the declaration.
std::string bound_text(double value) {
  std::string text = real_text(value);
  return ends_with(text, ".0") ? text.substr(0, text.size() - 2) : text;
}

}  // namespace

void throw_unknown_key(const Node& node,
                       const std::string& key,
                       const std::vector<std::string>& known) {
  const Node* child = node.find_direct(key);
  throw ConfigError((child == nullptr ? node : *child).where() + ": unknown key '" + key +
                    "', expected one this part has." + suggestion(key, known));
}

void throw_missing(const Node& node, const char* key) {
  throw ConfigError(node.where() + ": '" + key + "' is missing, expected a value.");
}

void throw_bad_value(const Node& node, const std::string& expected) {
  throw ConfigError(node.where() + ": expected " + expected + ", got " + got(node));
}

void OptionReader::finish() const {
  for (const auto& [key, child] : node_.map) {
    if (key == "_target_" || key == "_convert_") continue;
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      throw_unknown_key(node_, key, known_);
  }
}

void OptionReader::check_range(const char* key, double value, double low, double high) const {
  if (value >= low && value <= high) return;  // NaN fails too
  const Node* child = node_.find_direct(key);
  const std::string where = child == nullptr ? node_.where() + ": " + key : child->where();
  throw ConfigError(where + ": expected a value from " + bound_text(low) + " to " +
                    bound_text(high) + ", got " + bound_text(value));
}

void OptionReader::check_choice(const char* key,
                                const std::string& value,
                                const std::vector<std::string>& choices) const {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  const Node* child = node_.find_direct(key);
  const std::string where = child == nullptr ? node_.where() + ": " + key : child->where();
  throw ConfigError(where + ": expected one of " + join(choices, ", ") + ", got '" + value + "'." +
                    (nearest(value, choices).empty() ? "" : suggestion(value, choices)));
}

}  // namespace cytra::config
