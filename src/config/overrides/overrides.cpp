#include "config/overrides/overrides.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/strings.h"
#include "config/overrides/functions.h"
#include "config/overrides/range.h"
#include "config/overrides/value.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

[[noreturn]] void fail(const Override& override, std::size_t at, const std::string& what) {
  Origin place = override.origin;
  place.column = static_cast<int>(at) + 1;
  throw ConfigError(place.text() + ": " + what);
}

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ||
         c == '_' || c == '-' || c == '$';
}

/// Checks that the key is words with '.' or '/' between. `start`: where `key` begins in the text.
void check_key(const Override& override, const std::string& key, std::size_t start, bool package) {
  const std::string what = package ? "package" : "key";
  if (key.empty() || key.size() > 1000)
    fail(override, start, "the " + what + " is empty or too long, expected key=value");
  const bool group = !package && key.find('/') != std::string::npos;
  bool word_starts = true;
  for (std::size_t i = 0; i <= key.size(); ++i) {
    const char c = i < key.size() ? key[i] : '.';
    const bool separates = c == (group ? '/' : '.') || i == key.size();
    const bool fits =
        word_starts ? is_word_char(c) && c != '-' && !separates : is_word_char(c) || separates;
    word_starts = separates;
    if (fits) continue;
    if (package && c == ':') {
      fail(override,
           start + i,
           "group@package:other renamed a package in Hydra 1.0, expected group@package=option");
    }
    fail(override,
         start + i,
         "'" + key + "' is no " + what + ", expected letters, digits, '_', '-' or '$', with '.'" +
             (package ? "" : " or '/'") + " between words" +
             (c == '[' ? "; a.0 is the first element of a list" : ""));
  }
}

void set_values(Override& override, OverrideValue value, std::size_t start) {
  if (!value.sweep) {
    override.values.push_back(std::move(value.node));
  } else {
    SweepValue& sweep = *value.sweep;
    override.sweep = sweep.kind;
    override.include = std::move(sweep.include);
    override.exclude = std::move(sweep.exclude);
    if (sweep.kind == Override::Sweep::interval)
      sweep.choices = {{sweep.start, ""}, {sweep.stop, ""}};
    if (sweep.kind == Override::Sweep::range) {
      try {
        for (Node& node : range_values(sweep)) sweep.choices.push_back({std::move(node), ""});
      } catch (const std::invalid_argument& error) {
        fail(override, start, error.what());
      }
    }
    if (sweep.shuffled) shuffle(sweep.choices, sweep.seed);
    for (TypedValue& choice : sweep.choices) {
      override.texts.push_back(choice.text.empty() ? override_text(choice.node) : choice.text);
      override.values.push_back(std::move(choice.node));
    }
  }
  for (Node& node : override.values) {
    if (node.origin.file == nullptr) node.origin = override.origin;
  }
}

/// Whether text needs quotes: it is not one unquoted word that is read as text.
bool needs_override_quotes(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./+@%*?|").find(c) != std::string_view::npos;
  };
  Node node;
  type_override_scalar(text, node);
  return text.empty() || node.kind != Kind::string || !std::ranges::all_of(text, plain);
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  std::size_t bars = 0;  // before a quote, each counts twice
  for (const char c : text + "'") {
    if (c == '\'') result.append(bars, '\\');
    bars = c == '\\' ? bars + 1 : 0;
    if (c == '\'') result += '\\';
    result += c;
  }
  result.erase(result.size() - 2, 1);  // the last quote ends the text
  return result;
}

}  // namespace

Override parse_override(const std::string& text) {
  Override result;
  result.origin.file = std::make_shared<const std::string>(text);
  std::size_t start = 0;
  if (text.starts_with("++")) {
    result.action = Override::Action::force;
    start = 2;
  } else if (text.starts_with("+")) {
    result.action = Override::Action::add;
    start = 1;
  } else if (text.starts_with("~")) {
    result.action = Override::Action::remove;
    start = 1;
  }
  const std::size_t equals = text.find('=', start);
  if (equals == std::string::npos && result.action != Override::Action::remove) {
    throw ConfigError(result.where() +
                      ": no '=', expected key=value, +key=value, ++key=value or ~key");
  }
  result.key = text.substr(start, equals == std::string::npos ? equals : equals - start);
  if (const std::size_t at = result.key.find('@'); at != std::string::npos) {
    result.package = result.key.substr(at + 1);
    result.key.erase(at);
    if (!result.package->empty()) check_key(result, *result.package, start + at + 1, true);
  }
  check_key(result, result.key, start, false);
  if (equals != std::string::npos)
    set_values(result, parse_override_value(text, equals + 1, result.origin, true), equals + 1);
  return result;
}

std::string override_word(const std::string& key, const std::string& text) {
  std::string word = key + "=" + text;
  try {
    const Override read = parse_override(word);
    if (read.sweep == Override::Sweep::none && read.values.size() == 1 &&
        read.values[0].kind == Kind::string && read.values[0].string == text)
      return word;
  } catch (const ConfigError&) {
  }
  return key + "=" + override_text(Node::make_string(text));
}

std::string override_text(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return "null";
    case Kind::string:
      return needs_override_quotes(node.string) ? quoted(node.string) : node.string;
    case Kind::list: {
      return "[" + join(mapped(node.list, override_text), ",") + "]";
    }
    case Kind::map: {
      std::vector<std::string> items;
      for (const auto& [key, item] : node.map) {
        items.push_back((needs_override_quotes(key) ? quoted(key) : key) + ":" +
                        override_text(item));
      }
      return "{" + join(items, ",") + "}";
    }
    default:
      return plain_text(node);
  }
}

}  // namespace cytra::config
