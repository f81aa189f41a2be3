#include "config/interpolation/resolvers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "config/interpolation/expression.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

using Result = Interpolator::Selection::Result;

constexpr std::size_t max_format = 1000;

struct Call {
  Interpolator& tree;
  const Site& node;
  const std::string& source;
  const std::string& name;
  const std::vector<Value>& arguments;

  [[noreturn]] void fail(const std::string& what) const {
    tree.fail(node, "in " + source + ": " + what);
  }
  /// The argument `i`, which must be text.
  const std::string& text(std::size_t i) const {
    if (!arguments[i].is_text()) {
      fail("argument " + std::to_string(i + 1) + " of " + name + " is " +
           name_of(arguments[i].kind) + ", expected text");
    }
    return arguments[i].text;
  }
  Interpolator::Selection select(bool needs_value) const {
    return tree.select(node, text(0), source, needs_value);
  }
};

bool is_missing(const Value& value) {
  return value.is_text() && value.text == "???";
}

Value env(const Call& call) {
  const std::string& name = call.text(0);
  if (call.tree.keeps_environment) {
    std::string text = "${oc.env:" + name;
    if (call.arguments.size() > 1) {
      const Value& otherwise = call.arguments[1];
      if (!otherwise.is_text()) {
        text += "," + python_str(otherwise);
      } else {
        text += ",'";
        for (const char c : otherwise.text) text += c == '\'' ? "\\'" : std::string(1, c);
        text += "'";
      }
    }
    return Value::make_text(text + "}");
  }
  if (const char* value = std::getenv(name.c_str())) return Value::make_text(value);
  if (call.arguments.size() < 2) {
    call.fail("the environment variable " + quote(name) +
              " is not set, expected a value or a default: ${oc.env:NAME,default}");
  }
  const Value& fallback = call.arguments[1];
  return fallback.kind == Value::Kind::null ? fallback : Value::make_text(python_str(fallback));
}

Value select(const Call& call) {
  Interpolator::Selection selection = call.select(false);
  if (selection.result == Result::found && !is_missing(selection.value))
    return std::move(selection.value);
  return call.arguments.size() > 1 ? call.arguments[1] : Value();
}

Value decode(const Call& call) {
  if (call.arguments[0].kind == Value::Kind::null) return {};
  return call.tree.decode(call.text(0), call.node);
}

bool has_null_key(const Value& value) {
  const auto is_null = [](const Value& key) { return key.kind == Value::Kind::null; };
  return std::ranges::any_of(value.keys, is_null) || std::ranges::any_of(value.items, has_null_key);
}

Value create(const Call& call) {
  const Value& argument = call.arguments[0];
  if (argument.kind == Value::Kind::null) return {};
  if (argument.is_text()) {
    call.tree.count({1, argument.text.size()}, call.node);
    Node tree;
    try {
      tree = parse_yaml(argument.text, "the text");
    } catch (const ConfigError& error) {
      call.fail(error.what());
    }
    if (tree.kind == Kind::string) {
      Node map = Node::make_map();
      map.set(tree.string, Node());
      tree = std::move(map);
    }
    if (tree.kind != Kind::map && tree.kind != Kind::list)
      call.fail("the text holds " + std::string(name_of(tree.kind)) + ", expected a map or list");
    return call.tree.adopt(std::move(tree), call.node.parent, call.node);
  }
  if (argument.is_number())
    call.fail(std::string(name_of(argument.kind)) + ", expected a map, a list or YAML text");
  if (has_null_key(argument)) call.fail("null can't be a key, expected text");
  return call.tree.adopt(to_node(argument), call.node.parent, call.node);
}

/// Replaces $OLD_KEY, ${NEW_KEY} and $$, like Python's string.Template.
std::string fill(const std::string& text, const std::string& old_key, const std::string& new_key) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool found = text[i] == '$' && text.compare(i, 2, "$$") == 0;
    if (found) ++i;
    for (const auto& [name, key] :
         {std::pair<std::string, const std::string&>("OLD_KEY", old_key),
          std::pair<std::string, const std::string&>("NEW_KEY", new_key)}) {
      if (found || text[i] != '$') continue;
      const char after = i + 1 + name.size() < text.size() ? text[i + 1 + name.size()] : ' ';
      const bool is_longer = std::isalnum(static_cast<unsigned char>(after)) != 0 || after == '_';
      const std::string braced = "{" + name + "}";
      if (text.compare(i + 1, braced.size(), braced) == 0) {
        i += braced.size();
      } else if (text.compare(i + 1, name.size(), name) == 0 && !is_longer) {
        i += name.size();
      } else {
        continue;
      }
      out += key;
      found = true;
    }
    if (!found || text[i] == '$') out += text[i];
  }
  return out;
}

Value deprecated(const Call& call) {
  Interpolator::Selection selection = call.select(false);
  const std::string message =
      call.arguments.size() > 1
          ? call.text(1)
          : "'$OLD_KEY' is deprecated. Change your code and config to use '$NEW_KEY'";
  if (selection.result != Result::found)
    call.tree.fail_missing_key(call.node, selection, call.source);
  const Site& place = selection.value.site != nullptr ? *selection.value.site : *selection.last;
  const std::string line = fill(message, call.node.path(), place.path());
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(line).second) log::warn("{}", line);
  return std::move(selection.value);
}

/// The map that the first argument names, as a site.
const Site& map_of(const Call& call) {
  const Interpolator::Selection selection = call.select(true);
  if (selection.result != Result::found)
    call.tree.fail_missing_key(call.node, selection, call.source);
  const Value& value = selection.value;
  if (value.kind != Value::Kind::container || !value.site->node->is_map()) {
    const char* found = value.kind == Value::Kind::container ? "a list" : name_of(value.kind);
    call.fail(quote(selection.key) + " is " + found + ", expected the key of a map");
  }
  return *value.site;
}

Value keys(const Call& call) {
  Node list = Node::make_list();
  for (const auto& [key, child] : map_of(call).node->map)
    list.list.push_back(Node::make_string(key));
  return call.tree.adopt(std::move(list), call.node.parent, call.node);
}

Value values(const Call& call) {
  // OmegaConf makes a list of references, so the values are read when the list is. Relative
  // references count from the list, one level further in.
  const std::string& key = call.text(0);
  const std::string prefix = key[0] == '.' ? "." + key : key;
  Node list = Node::make_list();
  for (const auto& [name, child] : map_of(call).node->map)
    list.list.push_back(Node::make_string("${" + prefix + "." + name + "}"));
  return call.tree.adopt(std::move(list), call.node.parent, call.node);
}

Value now(const Call& call) {
  struct Moment {
    std::tm local{};
    int64_t microseconds = 0;
  };
  // The run's time is the same for every format and every tree of one process.
  static const Moment moment = [] {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    const auto seconds = static_cast<std::time_t>(count / 1'000'000);
    Moment result;
    ::localtime_r(&seconds, &result.local);
    result.microseconds = count % 1'000'000;
    return result;
  }();
  const std::string& pattern = call.text(0);
  if (pattern.size() > max_format)
    call.fail("the format is too long, expected at most 1000 characters");
  std::string format = " ";  // so that an empty result is no error of strftime
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'f') {
      const std::string digits = std::to_string(1'000'000 + moment.microseconds);
      format += digits.substr(1);
    } else if (next == '\0') {
      format += pattern[i];
    } else if (next != 'z' && next != 'Z') {  // Python's local time has no zone
      format += {pattern[i], next};
    }
    if (next != '\0') ++i;
  }
  std::string out(64 * max_format, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &moment.local));
  return Value::make_text(out.empty() ? "" : out.substr(1));
}

Value hydra(const Call& call) {
  const std::string& path = call.text(0);
  const auto& map = call.tree.root().node->map;
  const auto found =
      std::ranges::find_if(map, [](const auto& entry) { return entry.first == "hydra"; });
  if (found == map.end())
    call.fail("this configuration has no 'hydra' values, expected them at its root");
  const Site& site =
      call.tree.child(call.tree.root(), static_cast<std::size_t>(found - map.begin()));
  Interpolator::Selection selection =
      call.tree.select_from(call.node, site, path, call.source, false);
  if (selection.result == Result::found && !is_missing(selection.value))
    return std::move(selection.value);
  // Hydra gives null here. A group without a choice is usual; another missing key is probably a
  // mistake.
  if (selection.result != Result::found && path.rfind("runtime.choices.", 0) != 0)
    log::warn("{}: {} does not exist, it is null", call.node.node->where(), call.source);
  return {};
}

Value python_version(const Call& call) {
  call.fail("python_version: there is no Python here, expected a fixed text");
}

Value kv_to_dict(const Call& call) {
  const Value& argument = call.arguments[0];
  const bool is_list =
      argument.kind == Value::Kind::container && argument.site->node->kind == Kind::list;
  if (!is_list) {
    const bool is_map = argument.kind == Value::Kind::container;
    call.fail(std::string("kv_to_dict gets ") + (is_map ? "a map" : name_of(argument.kind)) +
              ", expected ${key} of a list of [key, value] pairs");
  }
  Node result = Node::make_map();
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < argument.site->node->list.size(); ++i) {
    const Value pair = call.tree.read(call.tree.child(*argument.site, i));
    const std::string place = "item " + std::to_string(i) + " of kv_to_dict ";
    if (pair.kind != Value::Kind::container || pair.site->node->list.size() != 2)
      call.fail(place + "is not a pair, expected [key, value]");
    const Value key = call.tree.read(call.tree.child(*pair.site, 0));
    const Value value = call.tree.read(call.tree.child(*pair.site, 1));
    if ((!key.is_text() && !key.is_number()) || is_missing(key))
      call.fail(place + "has the key " + python_repr(key).substr(0, 200) + ", expected text");
    if (value.kind != Value::Kind::container)
      call.fail(place + "has " + name_of(value.kind) + " as value, expected a map or list");
    Node node = call.tree.resolved(value, call.node.node->origin);
    const auto [entry, added] = places.emplace(key_identity(key), result.map.size());
    if (added) {
      result.map.emplace_back(plain_text(to_node(key)), std::move(node));
    } else {
      result.map[entry->second].second = std::move(node);
    }
  }
  return call.tree.adopt(std::move(result), nullptr, call.node);
}

Value eval(const Call& call) {
  call.tree.count({1, call.text(0).size()}, call.node);
  try {
    return evaluate_expression(call.text(0));
  } catch (const ConfigError& error) {
    call.tree.fail(call.node, error.what());
  }
}

struct Resolver {
  const char* name;
  std::size_t least, most;
  Value (*run)(const Call&);
};

constexpr std::array<Resolver, 12> resolvers = {{{"eval", 1, 1, eval},
                                                 {"hydra", 1, 1, hydra},
                                                 {"kv_to_dict", 1, 1, kv_to_dict},
                                                 {"now", 1, 1, now},
                                                 {"oc.create", 1, 1, create},
                                                 {"oc.decode", 1, 1, decode},
                                                 {"oc.deprecated", 1, 2, deprecated},
                                                 {"oc.dict.keys", 1, 1, keys},
                                                 {"oc.dict.values", 1, 1, values},
                                                 {"oc.env", 1, 2, env},
                                                 {"oc.select", 1, 2, select},
                                                 {"python_version", 0, 1, python_version}}};

}  // namespace

Value call_resolver(Interpolator& tree,
                    const Site& node,
                    const std::string& source,
                    const std::string& name,
                    const std::vector<Value>& arguments) {
  const auto* found =
      std::ranges::find_if(resolvers, [&](const Resolver& entry) { return name == entry.name; });
  if (found == resolvers.end()) {
    std::vector<std::string> names;
    for (const Resolver& entry : resolvers) names.emplace_back(entry.name);
    tree.fail(node,
              "unknown function " + quote(name) + " in " + source + ", expected a known one." +
                  suggestion(name, names));
  }
  if (arguments.size() < found->least || arguments.size() > found->most) {
    const std::string most = std::to_string(found->most);
    tree.fail(
        node,
        source + " has " + std::to_string(arguments.size()) + " arguments, expected " +
            (found->least == found->most ? most : std::to_string(found->least) + " or " + most));
  }
  return found->run({tree, node, source, name, arguments});
}

}  // namespace cytra::config
