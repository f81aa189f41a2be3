// ${...} in values. Source: OmegaConf 2.3's grammar; unlike there, text shows YAML's true and null,
// not Python's.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "base/strings.h"
#include "config/composer.h"
#include "config/merge.h"
#include "config/scalar.h"

namespace cytra::config {
namespace {

// References copy: without limits a few lines would grow to any size.
constexpr std::size_t max_chain = 100, max_copied_nodes = 200'000, max_text = 1 << 20,
                      max_copied_bytes = 32 << 20;
constexpr int max_nesting = 20;

using Chain = std::vector<Node*>;  // the containers round a node, from the root

struct Place {
  Chain chain;
  const Node* node;
  int nesting = 0;
};

/// The end of the ${ at `start` (after its '}'), or npos.
std::size_t expression_end(std::string_view text, std::size_t start) {
  int open = 0;
  char quote = '\0';
  for (std::size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '{') {
      ++open;
    } else if (c == '}' && --open == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// Arguments between commas that stand outside quotes and brackets.
std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> result;
  int open = 0;
  char quote = '\0';
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++open;
    } else if (c == '}' || c == ']') {
      --open;
    } else if (c == ',' && open == 0) {
      result.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  result.push_back(trim(text.substr(start)));
  return result;
}

class Resolver {
 public:
  explicit Resolver(Node& root) : root_(root) {}

  void visit(Chain& chain, Node& node) {
    if (done_.count(&node) != 0) return;
    if (node.kind == Kind::string) {
      if (node.string.find("${") != std::string::npos) resolve_text(chain, node);
      return;
    }
    if (node.kind != Kind::map && node.kind != Kind::list) return;
    chain.push_back(&node);
    for (auto& [key, child] : node.map) visit(chain, child);
    for (Node& item : node.list) visit(chain, item);
    chain.pop_back();
    done_.insert(&node);
  }

 private:
  [[noreturn]] static void fail(const Place& place, const std::string& what) {
    throw ConfigError(place.node->where() + ": " + what);
  }

  void resolve_text(const Chain& chain, Node& node) {
    const auto again = std::find(active_.begin(), active_.end(), &node);
    Place place{chain, &node};
    if (again != active_.end()) {
      std::string cycle;
      for (auto step = again; step != active_.end(); ++step) cycle += (*step)->path + " -> ";
      fail(place, "a cycle: " + cycle + node.path + ", expected a value at its end");
    }
    if (active_.size() >= max_chain)
      fail(place, "references follow each other too far, expected at most 100");
    active_.push_back(&node);
    Node value = evaluate(node.string, place);
    active_.pop_back();
    value.origin = node.origin;
    value.path = node.path;
    node = std::move(value);
    done_.insert(&node);
  }

  static Node text_node(std::string text) {
    Node node = Node::make_string(std::move(text));
    node.quoted = true;
    return node;
  }

  /// One ${...} alone keeps its type; among other text it becomes text. An odd number of
  /// backslashes escapes it.
  Node evaluate(const std::string& text, Place& place) {
    if (++place.nesting > max_nesting)
      fail(place, "${...} nest too deep, expected at most 20 levels");
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t bars = std::min(text.find_first_not_of('\\', i), text.size()) - i;
      const bool opens = text.compare(i + bars, 2, "${") == 0;
      out.append(opens ? bars / 2 : bars, '\\');
      i += bars;
      if (!opens) {
        if (i < text.size()) out += text[i++];
      } else if (bars % 2 == 1) {
        out += "${";
        i += 2;
      } else {
        const std::size_t end = expression_end(text, i);
        if (end == std::string::npos)
          fail(place, "'" + text.substr(i, 200) + "' does not end, expected '}'");
        Node value = expression(text.substr(i + 2, end - i - 3), place);
        if (i == 0 && end == text.size()) {
          --place.nesting;
          return value;
        }
        out += plain_text(value);
        i = end;
      }
      if (out.size() > max_text) fail(place, "the text grows too long, expected at most 1 MB");
    }
    --place.nesting;
    count({1, out.size()}, place);
    return text_node(std::move(out));
  }

  struct Size {
    std::size_t nodes = 0, bytes = 0;
  };
  static void add_size(const Node& node, Size& size) {
    ++size.nodes;
    size.bytes += node.string.size();
    for (const Node& item : node.list) add_size(item, size);
    for (const auto& [key, child] : node.map) add_size(child, size);
  }
  void count(const Size& size, const Place& place) {
    copied_.nodes += size.nodes;
    copied_.bytes += size.bytes;
    if (copied_.nodes <= max_copied_nodes && copied_.bytes <= max_copied_bytes) return;
    fail(place, "references copy too much, expected at most 200,000 values and 32 MB");
  }
  Node copy_of(const Node& node, const Place& place) {
    Size size;
    add_size(node, size);
    count(size, place);
    return node;
  }

  Node expression(const std::string& inner, Place& place) {
    const std::size_t colon =
        inner.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    if (colon != std::string::npos && colon > 0 && inner[colon] == ':') {
      return call(inner.substr(0, colon), inner.substr(colon + 1), place);
    }
    std::string key = trim(inner);
    if (key.find("${") != std::string::npos) key = plain_text(evaluate(key, place));
    std::string full;
    const Node* found = find(key, place, full);
    if (found == nullptr) {
      std::string best = nearest_key(root_, full, {});
      if (best == place.node->path) best.clear();
      fail(place,
           "${" + inner + "} refers to '" + full + "', which does not exist." +
               (best.empty() ? "" : " Did you mean '" + best + "'?"));
    }
    if (is_missing(*found)) {
      fail(place,
           "${" + inner + "} refers to '" + full + "', which is ???, expected a value (" + full +
               "=...)");
    }
    return copy_of(*found, place);
  }

  /// "a[b].0" -> a, b, 0
  static std::vector<std::string> steps_of(std::string_view key) {
    std::vector<std::string> steps;
    std::string step;
    const auto end_step = [&] {
      if (!step.empty()) steps.push_back(std::move(step));
      step.clear();
    };
    for (const char c : key) {
      if (c == '.' || c == '[' || c == ']') {
        end_step();
      } else {
        step += c;
      }
    }
    end_step();
    return steps;
  }

  /// The node that `key` names, resolved; nullptr when there is none. `full`: the key from the
  /// root.
  const Node* find(const std::string& key, const Place& place, std::string& full) {
    const std::size_t dots = std::min(key.find_first_not_of('.'), key.size());
    Chain chain;
    Node* node = &root_;
    if (dots > place.chain.size())
      fail(place, "${" + key + "} has too many dots, expected a container that far up");
    if (dots > 0) {
      const std::size_t up = place.chain.size() - dots;
      chain.assign(place.chain.begin(), place.chain.begin() + static_cast<std::ptrdiff_t>(up));
      node = place.chain[up];
    }
    const std::vector<std::string> steps = steps_of(std::string_view(key).substr(dots));
    full = join(steps, ".");
    if (dots > 0 && !node->path.empty()) full = node->path + (full.empty() ? "" : "." + full);
    if (steps.empty() && dots == 0) fail(place, "'${" + key + "}' is empty, expected a key");
    bool resolved =
        false;  // below a resolved node nothing is left to do, and its text may look like ${...}
    for (const std::string& step : steps) {
      if (node->kind == Kind::string && !resolved) visit(chain, *node);
      resolved = resolved || done_.count(node) != 0;
      Node* child = node->is_map() ? node->find_direct(step) : node->find(step);
      if (child == nullptr) return nullptr;
      chain.push_back(node);
      node = child;
    }
    if (!resolved) visit(chain, *node);
    return node;
  }

  Node argument(const std::string& text, Place& place) {
    Node node;
    if (text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0]) {
      return evaluate(parse_value(text, place.node->origin).string, place);
    }
    if (text.find("${") != std::string::npos) return evaluate(text, place);
    if (!text.empty() && (text[0] == '[' || text[0] == '{'))
      return parse_value(text, place.node->origin);
    type_override_scalar(text, node);
    return node;
  }

  Node call(const std::string& name, const std::string& text, Place& place) {
    static const std::vector<std::string> names = {
        "now", "oc.decode", "oc.dict.keys", "oc.dict.values", "oc.env", "oc.select"};
    if (name == "now") {
      std::string& time = times_[text];
      if (time.empty()) time = format_time(trim(text).c_str());
      return text_node(time);
    }
    if (name == "hydra") {
      std::string full;
      const Node* found = find("hydra." + text, place, full);
      if (found == nullptr || is_missing(*found)) fail(place, "no " + full);
      return copy_of(*found, place);
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(place,
           "unknown function '" + name + "' in ${" + name + ":...}, expected a known one." +
               suggestion(name, names));
    }
    std::vector<Node> arguments;
    for (const std::string& part : split_arguments(text))
      arguments.push_back(argument(part, place));
    const std::size_t most = name == "oc.env" || name == "oc.select" ? 2 : 1;
    if (arguments.size() > most) {
      fail(place,
           "${" + name + ":...} has " + std::to_string(arguments.size()) +
               " arguments, expected at most " + std::to_string(most));
    }
    return call(name, arguments, place);
  }

  Node call(const std::string& name, const std::vector<Node>& arguments, Place& place) {
    const std::string first = plain_text(arguments[0]);
    if (name == "oc.env") {
      if (const char* value = std::getenv(first.c_str())) return text_node(value);
      if (arguments.size() < 2) {
        fail(place,
             "the environment variable '" + first +
                 "' is not set, expected a value or ${oc.env:" + first + ",default}");
      }
      return arguments[1].is_null() ? arguments[1] : text_node(plain_text(arguments[1]));
    }
    if (name == "oc.decode") {
      return arguments[0].is_null() ? arguments[0] : parse_value(first, place.node->origin);
    }
    if (name == "oc.select") {
      std::string full;
      const Node* found = find(first, place, full);
      if (found != nullptr && !is_missing(*found)) return copy_of(*found, place);
      return arguments.size() > 1 ? arguments[1] : Node();
    }
    Node source = arguments[0];
    if (source.kind == Kind::string) {
      std::string full;
      const Node* found = find(first, place, full);
      if (found != nullptr) source = copy_of(*found, place);
    }
    if (!source.is_map())
      fail(place, "${" + name + ":" + first + "} needs a map, expected its key");
    Node list;
    list.kind = Kind::list;
    for (auto& [key, child] : source.map) {
      list.list.push_back(name == "oc.dict.keys" ? text_node(key) : std::move(child));
    }
    return list;
  }

  Node& root_;
  std::vector<const Node*> active_;           // texts being resolved
  std::unordered_set<const Node*> done_;      // resolved texts and containers
  std::map<std::string, std::string> times_;  // one value per format
  Size copied_;
};

}  // namespace

void resolve(Node& root) {
  set_paths(root);
  Chain chain{&root};
  Resolver resolver(root);
  for (auto& [key, child] : root.map) {
    if (key != "hydra") resolver.visit(chain, child);
  }
  set_paths(root);
}

Node evaluate(const Node& root, const std::string& key) {
  Node copy = root;
  resolve(copy);
  return copy.at(key);
}

}  // namespace cytra::config
