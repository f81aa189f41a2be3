#include "config/keys.h"

#include <algorithm>

#include "base/error.h"

namespace cytra::config {

void add_keys(const Node& node,
              const std::string& path,
              std::vector<std::string>& out,
              bool enters_lists) {
  const auto add = [&](const Node& child, const std::string& key) {
    out.push_back(child_path(path, key));
    add_keys(child, child_path(path, key), out, enters_lists);
  };
  for (const auto& [key, child] : node.map) add(child, key);
  for (std::size_t i = 0; enters_lists && i < node.list.size(); ++i)
    add(node.list[i], std::to_string(i));
}

void add_leaves(const std::string& key, const Node& node, Leaves& out) {
  if (!node.is_map() || (node.map.empty() && !key.empty())) out.emplace_back(key, &node);
  for (const auto& [name, child] : node.map) add_leaves(child_path(key, name), child, out);
}

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups) {
  std::vector<std::string> paths, words;
  add_keys(root, "", paths, true);
  const std::size_t dot = key.rfind('.');
  const std::string parent = dot == std::string::npos ? "" : key.substr(0, dot);
  const std::string last = key.substr(dot + 1);
  const Node* place = parent.empty() ? &root : root.find(parent);
  std::vector<std::string> siblings = place == nullptr ? std::vector<std::string>() : place->keys();
  if (parent.empty()) siblings.insert(siblings.end(), groups.begin(), groups.end());
  if (const std::string best = nearest(last, siblings); !best.empty())
    return child_path(parent, best);
  for (const std::string& ending : {"." + key, "." + last}) {
    std::string best;
    for (const std::string& path : paths) {
      if (path.ends_with(ending) && (best.empty() || path.size() < best.size())) best = path;
    }
    if (!best.empty()) return best;
    if (const std::string whole = nearest(key, paths); !whole.empty()) return whole;
  }
  for (const std::string& path : paths) words.push_back(path.substr(path.rfind('.') + 1));
  const std::string word = nearest(last, words);
  const auto found = std::ranges::find(words, word);
  return word.empty() ? "" : paths[static_cast<std::size_t>(found - words.begin())];
}

bool is_missing(const Node& node) {
  return node.kind == Kind::string && node.string == "???";
}

}  // namespace cytra::config
