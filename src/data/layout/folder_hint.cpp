#include "data/layout/folder_hint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/layout/layout_names.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostFolders = 12;  // more folders hold one image each, and are not columns

bool holds_images(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".") && io::is_image_path(entry.path().string())) return true;
  }
  return false;
}

}  // namespace

std::string folders_word(const std::vector<std::string>& folders) {
  return shell_quote("data.folders=" + config::override_text(config::Node::make_list(folders)));
}

std::string path_word(const std::string& path) {
  return shell_quote(config::override_word("data.path", path));
}

std::string folder_hint(const std::string& root, std::size_t columns) {
  std::error_code error;
  const fs::path parent = fs::path(root) / part_in(root, Split::train);
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    std::error_code ignored;  // a loop of links
    const std::string path = entry.path().string();
    if (!entry.is_directory(ignored) || io::is_image_path(path)) continue;
    if (holds_images(entry.path())) names.push_back(entry.path().filename().string());
    if (names.size() > kMostFolders) return "";
  }
  std::ranges::sort(names);
  if (holds_images(parent)) names.insert(names.begin(), ".");
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
