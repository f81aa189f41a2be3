#include "config/keys.h"

#include <algorithm>

#include "base/strings.h"

namespace cytra::config {
namespace {

void add_paths(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (!path.empty()) out.push_back(path);
  for (const auto& [key, child] : node.map) add_paths(child, child_path(path, key), out);
  for (std::size_t i = 0; i < node.list.size(); ++i) {
    add_paths(node.list[i], child_path(path, std::to_string(i)), out);
  }
}

}  // namespace

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups) {
  std::vector<std::string> paths, words;
  add_paths(root, "", paths);
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
      if (ends_with(path, ending) && (best.empty() || path.size() < best.size())) best = path;
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
