// Part of config/composition/defaults.h: the folders of groups and their options.
#include <algorithm>
#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/composition/defaults.h"
#include "config/interpolation/interpolate.h"

namespace cytra::config {
namespace {

namespace fs = std::filesystem;

void take_package(DefaultsItem& item) {
  const std::size_t at = item.path.find('@');
  if (at == std::string::npos) return;
  const std::string package = item.path.substr(at + 1);
  item.package = package.substr(0, package.find(':'));
  item.path.erase(at);
  if (*item.package == "_here_") item.package = "";
  if (item.is_self())
    throw ConfigError(item.origin.text() + ": _self_ has no package, expected - _self_");
}

/// Separates "override /model" into the keyword and "/model".
void take_keywords(DefaultsItem& item) {
  const std::vector<std::string> words = split(item.path, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "optional") {
      item.optional = true;
    } else if (words[i] == "override") {
      item.overrides = true;
    } else if (!words[i].empty()) {
      throw ConfigError(item.origin.text() + ": unknown word '" + words[i] +
                        "', expected optional or override");
    }
  }
  item.path = words.back();
}

DefaultsItem read_item(const Node& node) {
  DefaultsItem item;
  item.origin = node.origin;
  if (node.kind == Kind::string) {
    item.path = node.string;
    take_package(item);
    return item;
  }
  if (!node.is_map() || node.map.size() != 1) {
    throw ConfigError(
        node.where() +
        ": a defaults list holds something else, expected '- group: option' or '- config'");
  }
  const auto& [key, value] = node.map[0];
  item.path = key;
  item.is_group = true;
  item.origin = value.origin;
  take_package(item);
  take_keywords(item);
  item.is_list = value.kind == Kind::list;
  const std::string expected =
      "the name of an option of '" + item.path + "' (in quotes when it looks like a number)";
  if (value.kind == Kind::string) {
    if (value.string == "_self_")
      throw ConfigError(value.where() + ": _self_ belongs to no group, expected - _self_");
    item.options = {value.string};
  } else if (item.is_list) {
    for (const Node& option : value.list) {
      if (option.kind != Kind::string)
        throw ConfigError(option.where() + ": not text, expected " + expected);
      item.options.push_back(option.string);
    }
  } else if (!value.is_null()) {
    throw ConfigError(value.where() + ": not text, expected " + expected);
  }
  return item;
}

/// Reads the header: leading lines like `# @package a.b`; the first other line ends it.
void read_header(const std::string& text, const std::string& name, ConfigFile& file) {
  std::optional<std::string>& package = file.header;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = trim(std::string_view(text).substr(start, end - start));
    start = end + 1;
    if (line.empty()) continue;
    if (line[0] != '#') break;
    line = trim(std::string_view(line).substr(1));
    if (!line.starts_with("@")) break;
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    if (words.size() != 2)
      throw ConfigError(name + ":1:1: bad header '# " + line + "', expected # @package a.b");
    if (words[0] == "@package") package = words[1];
    file.moves_keys = file.moves_keys || (words[0] == "@keys_of" && words[1] == "CytoDL");
  }
  // A header is always absolute.
  if (package && *package != "_global_" && !package->starts_with("_global_."))
    package = "_global_." + *package;
}

std::unique_ptr<ConfigFile> read_config(const std::string& name, const std::string& text) {
  auto file = std::make_unique<ConfigFile>();
  read_header(text, name, *file);
  file->content = parse_yaml(text, name);
  if (file->content.kind == Kind::string) {  // OmegaConf.create() does so with text
    log::warn("{}: text alone, it becomes a key without a value; expected key: value", name);
    file->content = parse_yaml(file->content.string, name);
    if (file->content.kind == Kind::string) {
      const std::string key = file->content.string;
      file->content = Node::make_map();
      file->content.set(key, Node());
    }
  }
  if (!file->content.is_map() && file->content.kind != Kind::list) {
    throw ConfigError(file->content.where() + ": the file holds a " + name_of(file->content.kind) +
                      ", expected a map");
  }
  check_syntax(file->content);
  auto& map = file->content.map;
  const auto defaults =
      std::ranges::find_if(map, [](const auto& entry) { return entry.first == "defaults"; });
  if (defaults == map.end()) return file;
  if (defaults->second.kind != Kind::list) {
    throw ConfigError(defaults->second.where() + ": defaults: expected a list, got a " +
                      name_of(defaults->second.kind));
  }
  for (const Node& item : defaults->second.list) file->defaults.push_back(read_item(item));
  map.erase(defaults);
  return file;
}

}  // namespace

const ConfigFile* Repository::load(const std::string& path) {
  const std::string name = path.ends_with(".yaml") ? path.substr(0, path.size() - 5) : path;
  const auto [place, added] = files_.try_emplace(name);
  if (!added) return place->second.get();
  if (const HydraFile* file = hydra_file(name)) {
    place->second = read_config("hydra.conf/" + name + ".yaml", file->text);
  }
  for (const std::string& folder : folders_) {
    const std::string file = folder + "/" + name + ".yaml";
    if (::access(file.c_str(), F_OK) != 0) continue;
    if (place->second == nullptr) {
      place->second = read_config(file, read_file(file, 4 << 20));
      place->second->name = file;
    } else {
      log::warn("{}: not used, {} comes before it; choose another name",
                file,
                place->second->name.empty() ? "Cytra's own" : place->second->name);
    }
  }
  return place->second.get();
}

bool Repository::has_group(const std::string& group) {
  const auto [place, added] = groups_.try_emplace(group, false);
  if (added && (group == "hydra" || group.starts_with("hydra/"))) {
    for (const std::string& file : hydra_files())
      place->second = place->second || file.starts_with(group + "/");
  }
  for (std::size_t i = 0; added && !place->second && i < folders_.size(); ++i) {
    struct stat status {};
    place->second =
        ::stat((folders_[i] + "/" + group).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }
  return place->second;
}

std::vector<std::string> Repository::options(const std::string& group) const {
  std::set<std::string> found;
  const std::string prefix = group.empty() ? "" : group + "/";
  for (const std::string& file : hydra_files()) {
    if (file.starts_with(prefix)) found.insert(file.substr(prefix.size()));
  }
  for (const std::string& folder : folders_) {
    std::error_code error;
    const fs::path root = group.empty() ? fs::path(folder) : fs::path(folder) / group;
    for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == ".yaml")
        found.insert(entry->path().lexically_relative(root).replace_extension());
    }
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> Repository::groups() const {
  std::set<std::string> found;
  for (const std::string& option : options("")) {
    if (option.starts_with("hydra/")) continue;
    for (std::size_t end = option.find('/'); end != std::string::npos;
         end = option.find('/', end + 1)) {
      found.insert(option.substr(0, end));
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace cytra::config
