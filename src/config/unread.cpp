#include "config/unread.h"

#include <set>

#include "base/strings.h"
#include "config/variables.h"

namespace cytra::config {
namespace {

using Names = std::set<std::string>;

std::string first_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

/// The top-level keys that are read.
Names read_keys(const Node& root, std::vector<std::string> open) {
  Names read(open.begin(), open.end());
  while (!open.empty()) {
    const std::string key = std::move(open.back());
    open.pop_back();
    const Node* node = root.find_direct(key);
    if (node == nullptr) continue;
    for (const std::string& name : references_of(*node, key)) {
      if (read.insert(first_of(name)).second) open.push_back(first_of(name));
    }
  }
  return read;
}

/// Adds the places where a value below `node` was set: the command line, or a file that is not
/// among `own`.
void add_setters(const Node& node, const Names& own, std::vector<Origin>& out) {
  for (const auto& [name, child] : node.map) add_setters(child, own, out);
  for (const Node& child : node.list) add_setters(child, own, out);
  if (node.map.empty() && node.list.empty() && node.origin.file != nullptr &&
      own.count(*node.origin.file) == 0)
    out.push_back(node.origin);
}

/// Adds the places where something reads a component of that name: "task.heads.seg.loss".
void add_places(const Node& node,
                const std::string& path,
                const std::string& name,
                std::vector<std::string>& out) {
  for (const auto& [key, child] : node.map) {
    const std::string place = path + "." + key;
    if (key == name && !child.is_container() && !child.is_null()) continue;
    if (key == name) {
      out.push_back(place);
    } else {
      add_places(child, place, name, out);
    }
  }
}

/// Advice what to type instead of `typed`, which chose a component by its name.
std::string advice(const Node& root,
                   const Names& read,
                   const std::string& name,
                   const Origin& typed) {
  const std::string start = name + "=";
  const std::string value =
      typed.file->starts_with(start) ? typed.file->substr(start.size()) : "...";
  std::vector<std::string> places;
  for (const auto& [key, child] : root.map) {
    if (read.count(key) > 0 && key != "hydra") add_places(child, key, name, places);
  }
  if (places.empty()) return "; leave it out";
  std::vector<std::string> words;
  for (const std::string& place : places)
    words.push_back("'+" + name + "@" + place + "=" + value + "'");
  return "; expected " + join(words, " or ");
}

}  // namespace

void tell_unread(const Node& composed,
                 const std::vector<IncludedFile>& files,
                 const std::vector<std::string>& sections,
                 const std::vector<std::string>& components,
                 Problems& problems) {
  const Names read = read_keys(composed, sections);
  const auto& primary = composed.origin.file;
  for (const auto& [name, node] : composed.map) {
    if (read.count(name) > 0) continue;
    std::vector<Origin> setters;
    Names own;  // files of its group, and the primary config
    if (primary != nullptr) own.insert(*primary);
    for (const IncludedFile& file : files) {
      if (first_of(file.package) != name) continue;
      own.insert(file.name);
      if (file.chosen.file != nullptr && file.chosen.file != primary &&
          own.count(*file.chosen.file) == 0)
        setters.push_back(file.chosen);
    }
    add_setters(node, own, setters);
    const bool is_component = contains(components, name);
    Names told;
    for (const Origin& setter : setters) {
      if (!told.insert(setter.text()).second) continue;
      Node place;
      place.origin = setter;
      if (is_component && setter.line == 0) {  // typed
        problems.add(place,
                     "no effect, nothing in this configuration refers to '" + name + "'" +
                         advice(composed, read, name, setter));
      } else {
        problems.note(place, "no effect, nothing in this configuration reads '" + name + "'");
      }
    }
  }
}

}  // namespace cytra::config
