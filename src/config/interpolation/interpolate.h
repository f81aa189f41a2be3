#pragma once
// Follows ${...} through a tree. Source: OmegaConf 2.3 (base.py, basecontainer.py).
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/interpolation/grammar.h"
#include "config/interpolation/value.h"
#include "config/node.h"

namespace cytra::config {

/// Reads one tree that must not change meanwhile. A reference leads to a place; only the value
/// that is read is resolved, and ${.x} counts from the place where it is written. Each text is
/// evaluated once. Throws: ConfigError naming place, key, and the chain of references.
class Interpolator {
 public:
  explicit Interpolator(const Node& root);

  bool keeps_environment = false;  // ${oc.env:NAME} is its own value
  const Site& root() const { return *root_; }
  /// The value at a site with its own ${...} followed; a container is returned unread.
  Value read(const Site& site);
  /// The value as a tree without ${...}; `origin`: where it is read.
  Node resolved(const Value& value, const Origin& origin);

  struct Selection {
    enum class Result { found, no_key, no_container };
    Result result = Result::no_key;
    Value value;
    const Site* last = nullptr;  // found: where the path ends; else the last that exists
    std::string key;             // from the root
    std::string place;           // no_key: what is missing, references on the way followed
  };
  /// The value at `key`, with dots and brackets as in OmegaConf's select: absolute, or with
  /// leading dots relative to the container of `node`. `source` is for messages. `needs_value`:
  /// ??? is an error.
  Selection select(const Site& node,
                   const std::string& key,
                   const std::string& source,
                   bool needs_value);
  /// The value at `key`, as by select(), beginning at a given container.
  Selection select_from(const Site& node,
                        const Site& from,
                        std::string_view key,
                        const std::string& source,
                        bool needs_value);

  // The functions of resolvers.cpp use these:
  /// Evaluates text by the grammar of arguments, at the place of `node`.
  Value decode(const std::string& text, const Site& node);
  /// Adds a new tree inside `parent` (nullptr: with a root of its own). Checks the syntax of its
  /// texts.
  Value adopt(Node tree, const Site* parent, const Site& node);
  const Site& child(const Site& container, std::size_t i);
  /// Counts copied values towards the limit of references, or fails.
  void count(const Size& size, const Site& node);
  [[noreturn]] void fail(const Site& node, const std::string& what) const;
  [[noreturn]] void fail_missing_key(const Site& node,
                                     const Selection& selection,
                                     const std::string& source) const;

 private:
  const Site* step(const Site& node, const Site& container, const std::string& key);
  Value evaluate(const Element& element, const Site& node);
  Value evaluate(const Interpolation& interpolation, const Site& node);
  std::string name_of(const Interpolation& interpolation, const Site& node);
  Node resolved_container(const Site& site, const Origin& origin);

  const Node& tree_;
  const Site* root_;
  std::unordered_map<const Node*, Site> sites_;
  std::unordered_map<const Node*, std::unordered_map<std::string_view, std::size_t>> large_maps_;
  std::unordered_map<const Node*, Value> done_;
  std::vector<std::unique_ptr<const Node>> adopted_;
  std::vector<const Site*> active_;  // texts being evaluated
  std::vector<const Site*> trail_;   // references being written out
  struct Open {
    const Site* site;
    std::size_t trail;
  };
  std::vector<Open> open_;  // containers being written out
  Size copied_;
};

/// Throws ConfigError for the first text of the tree whose ${...} has bad syntax.
void check_syntax(const Node& root);
/// The container that the text at `path` ("a.b", "" for the root) of an unresolved tree refers to,
/// with its own ${...} unread; nothing when it leads to a scalar or nowhere. OmegaConf copies it
/// before it merges a map onto the text.
std::optional<Node> referenced_container(const Node& root, const std::string& path);
/// The map or list that `key` leads to, references followed; nullptr when there is none in the
/// tree. Throws: ConfigError as Interpolator::select_from().
Node* container_at(Node& root, const std::string& key);

}  // namespace cytra::config
