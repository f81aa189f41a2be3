#include "data/layout/folder_hint.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/layout/folder_layout.h"
#include "data/layout/layout_names.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostFolders = 12;  // more folders hold one image each, and are not columns

}  // namespace

std::string folders_word(const std::vector<std::string>& folders) {
  return shell_quote("data.folders=" + config::override_text(config::Node::make_list(folders)));
}

std::string path_word(const std::string& path) {
  return shell_quote(config::override_word("data.path", path));
}

std::string folder_hint(const std::string& root, std::size_t columns) {
  const fs::path parent = fs::path(root) / part_in(root, Split::train);
  const Holding holding = look_into(parent, ".");
  std::vector<std::string> names;
  if (!holding.images.empty()) names.emplace_back(".");
  for (const std::string& name : holding.folders) {
    if (!look_into(parent / name, name).images.empty()) names.push_back(name);
    if (names.size() > kMostFolders) return "";
  }
  if (names.empty()) return "";
  if (columns > 1 && names == std::vector<std::string>{"."}) {
    return "; images are in the folder itself: train.csv with the columns raw,seg says in each row "
           "which file is an image and which its target; or put the targets into a folder: "
           "data=folder 'data.folders=[.,MASKS]'; experiment=im2im/mae learns from images without "
           "masks";
  }
  const auto target = std::ranges::find_if(names, names_target);
  const auto image = std::find_if_not(names.begin(), names.end(), names_target);
  std::vector<std::string> typed = {image == names.end() ? "IMAGES" : *image};
  if (columns > 1) typed.push_back(target == names.end() ? "MASKS" : *target);
  return fmt::format("; images are in {}: data=folder {}{}",
                     join(names, ", "),
                     folders_word(typed),
                     columns > 1 && target == names.end()
                         ? "; experiment=im2im/mae learns from images without masks"
                         : "");
}

}  // namespace cytra::data
