#include "config/variables.h"

#include <set>

#include "base/strings.h"

namespace cytra::config {
namespace {

using Names = std::set<std::string>;

void add_key(const std::string& key, Names& out) {
  for (std::size_t end = key.find('.'); end != std::string::npos; end = key.find('.', end + 1))
    out.insert(key.substr(0, end));
  if (!key.empty()) out.insert(key);
}

/// Adds the references in a text: ${a.b}, ${oc.select:a.b,x}, and ${.b} and ${..b} below
/// `parents`.
void add_references(const std::string& text, const std::vector<std::string>& parents, Names& out) {
  for (std::size_t at = 0; (at = text.find("${", at)) != std::string::npos;) {
    at += 2;
    std::size_t end = text.find_first_of(":,}$ [", at);
    if (end != std::string::npos && text[end] == ':') {
      at = end + 1;
      end = text.find_first_of(",}$ [", at);
    }
    std::string key = text.substr(at, end == std::string::npos ? end : end - at);
    const std::size_t dots = std::min(key.find_first_not_of('.'), key.size());
    if (dots > parents.size()) continue;
    key.erase(0, dots);
    if (dots > 0) {
      const auto last = parents.end() - static_cast<std::ptrdiff_t>(dots - 1);
      const std::string above = join({parents.begin(), last}, ".");
      key = above.empty() ? key : above + "." + key;
    }
    add_key(key, out);
  }
}

void add_from(const Node& node, std::vector<std::string>& parents, Names& out) {
  if (node.kind == Kind::string) add_references(node.string, parents, out);
  const auto descend = [&](const std::string& key, const Node& child) {
    const bool container = child.is_container();  // relative keys in a text begin at its container
    if (container) parents.push_back(key);
    add_from(child, parents, out);
    if (container) parents.pop_back();
  };
  for (const auto& [key, child] : node.map) descend(key, child);
  for (std::size_t i = 0; i < node.list.size(); ++i) descend(std::to_string(i), node.list[i]);
}

}  // namespace

std::vector<std::string> variables_of(const Node& root, const std::vector<std::string>& own) {
  Names names(own.begin(), own.end());
  std::vector<std::string> parents;
  add_from(root, parents, names);
  return {names.begin(), names.end()};
}

std::vector<std::string> references_of(const Node& node, const std::string& key) {
  Names names;
  std::vector<std::string> parents;
  if (node.is_container()) parents.push_back(key);
  add_from(node, parents, names);
  return {names.begin(), names.end()};
}

}  // namespace cytra::config
