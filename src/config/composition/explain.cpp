// Part of config/composer.h: finds where a value comes from. The composition is run again, and
// after each file and override the value is compared with its earlier one.
#include "base/error.h"
#include "config/composer.h"
#include "config/keys.h"

namespace cytra::config {
namespace {

bool same_place(const Origin& a, const Origin& b) {
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

}  // namespace

std::vector<Change> Composer::explain(const std::string& primary,
                                      const std::vector<std::string>& overrides,
                                      const std::string& key) const {
  std::vector<Change> changes;
  Node before;
  bool existed = false;
  const Watch watch = [&](const Node& root, const std::string& file, const Origin& chosen) {
    const Node* now = root.find(key);
    Leaves old_leaves, new_leaves;
    if (existed) add_leaves(key, before, old_leaves);
    if (now != nullptr) add_leaves(key, *now, new_leaves);
    for (const auto& [name, leaf] : new_leaves) {
      const std::string below = name.size() > key.size() ? name.substr(key.size() + 1) : "";
      const Node* old = !existed ? nullptr : below.empty() ? &before : before.find(below);
      if (old == nullptr || !same_place(old->origin, leaf->origin) || !equal(*old, *leaf))
        changes.push_back({name, *leaf, false, file, chosen});
    }
    for (const auto& [name, leaf] : old_leaves) {
      if (root.find(name) == nullptr) changes.push_back({name, *leaf, true, file, chosen});
    }
    existed = now != nullptr;
    before = existed ? *now : Node();
  };
  const Composition result = load(primary, overrides, false, watch);
  if (changes.empty() && result.root.find(key) != nullptr)  // the program itself fills it in
    changes.push_back({key, result.root.at(key), false, "Cytra itself", {}});
  if (changes.empty()) {
    const std::string best = nearest_key(result.root, key, {});
    throw ConfigError(
        "no key '" + key + "' in this configuration" +
        (best.empty() ? ", expected one that --cfg job shows" : ". Did you mean '" + best + "'?"));
  }
  return changes;
}

}  // namespace cytra::config
