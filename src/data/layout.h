#pragma once
// How the images of a data set lie: what one would type to have them read.
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cytra::data {

struct LayoutWish {
  std::string source_col, target_col;
  bool has_target = true;                 // false: images alone
  bool prefers_annotations = false;       // boxes are wanted
  std::vector<std::string> folders = {};  // of the columns, where they are known
};

struct Layout {
  std::string module;  // of the group `data`: "folder"; "": manifests, the default
  /// Lists of texts, or one text in a list: {"data.folders", {"image", "label"}}.
  std::vector<std::pair<std::string, std::vector<std::string>>> settings;
  std::string text;  // "images in image, targets in label"
};

/// None where nothing is to be typed: the path holds what `wish` says in manifests, or what nobody
/// can tell. Throws: ConfigError that lists the candidates and what to type where several fit, and
/// for a layout that is known but not read.
std::optional<Layout> layout_of(const std::string& path, const LayoutWish& wish);

}  // namespace cytra::data
