// Part of config/composition/defaults.h: paths and packages of one entry of a defaults list.
#include <algorithm>

#include "config/composition/defaults.h"

namespace cytra::config {
namespace {

std::string dots(std::string path) {
  std::ranges::replace(path, '/', '.');
  return path;
}

std::string joined(const std::string& a, const std::string& b, char separator) {
  return a.empty() ? b : b.empty() ? a : a + separator + b;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string without_slash(const std::string& path) {
  return path.starts_with("/") ? path.substr(1) : path;
}

}  // namespace

std::string DefaultsNode::group() const {
  const std::string own = without_slash(item.is_group ? item.path : folder_of(item.path));
  return item.path.starts_with("/") ? own : joined(parent_group, own, '/');
}

std::string DefaultsNode::default_package() const {
  return dots(group());
}

std::string DefaultsNode::config_path() const {
  if (item.is_group) return group() + "/" + (item.options.empty() ? "" : item.options[0]);
  return item.path.starts_with("/") ? item.path.substr(1) : joined(parent_group, item.path, '/');
}

std::string DefaultsNode::package(bool use_header) const {
  const std::string path = without_slash(item.path);
  std::string own = dots(item.is_group ? path : folder_of(path));
  if (item.package) {
    own = *item.package;
  } else if (use_header && header) {
    own = *header;
  }
  const std::string all = joined(parent_package, own, '.');
  const std::size_t global = all.rfind("_global_");
  return global == std::string::npos ? all : all.substr(std::min(global + 9, all.size()));
}

std::string DefaultsNode::override_key() const {
  const std::string own = group(), final_package = package(false);
  if (default_package() == final_package) return own;
  return own + "@" + (final_package.empty() ? "_global_" : final_package);
}

}  // namespace cytra::config
