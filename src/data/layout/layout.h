#pragma once
// The layout of a data set's images: the settings with which they are read.
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cytra::data {

/// What a program needs of a data set, and the columns that its settings name.
struct DataNeeds {
  std::string source_col, target_col;
  bool has_target = true;                 // false: images alone
  bool prefers_annotations = false;       // boxes are the targets
  bool may_be_classes = false;            // a folder of images for each class will do
  bool is_any_task = false;               // a table's column of words or numbers will do
  std::vector<std::string> folders = {};  // the columns' folders, where they are known
};

struct Layout {
  std::string module;  // an option of the group `data`: "folder"; "": manifests, the default
  /// The settings, each a list of texts, or a word in a list: {"data.folders", {"image", "label"}},
  /// {"data.recursive", {"true"}}.
  std::vector<std::pair<std::string, std::vector<std::string>>> settings;
  std::string text;             // "images in image, targets in label"
  std::string experiment = {};  // that learns these targets; "": it follows from their values
};

/// The folder of a data set with dataset.json and imagesTr: `path`, or the only folder in it (as
/// nnUNet_raw has), or the only one in that; else `path`.
std::string described_in(const std::string& path);

/// Finds the layout. None where no settings are needed, as the path holds manifests with what
/// `needs` says, or where the layout is unknown. Throws: ConfigError that lists the candidates and
/// what to type where several fit, and for a layout that is known but not read.
std::optional<Layout> layout_of(const std::string& path, const DataNeeds& needs);

}  // namespace cytra::data
