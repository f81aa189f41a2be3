#pragma once
// The parts of layout_of(): the layouts that one folder may have; for data/layout only.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/layout/layout.h"

namespace cytra::data {

/// Thrown where several layouts fit, and the user has to choose.
struct SeveralMeant : ConfigError {
  using ConfigError::ConfigError;
};

/// The place where the folders of a data set begin: `prefix` below the path; no prefix for train/.
struct Base {
  std::filesystem::path place;
  std::string prefix;
};

/// The content of a folder, without that of its subfolders.
struct Holding {
  std::filesystem::path place;
  std::string name;                                       // below the base; ".": the base itself
  std::string kind;                                       // the name, without the word of a part
  std::vector<std::string> images, annotations, folders;  // names
  std::string foreign;                                    // the path of one that is not read
};
Holding look_into(const std::filesystem::path& folder, const std::string& name);

/// Whether it is a file of annotations of many images, COCO's or CVAT's.
bool is_of_many(const std::filesystem::path& path);
/// The path of `name` below the one of the data set.
std::string joined(const std::string& prefix, const std::string& name);
/// Whether an image has a namesake.
bool has_partners(const std::vector<std::string>& images, const std::vector<std::string>& others);
std::vector<std::string> stems_of(const std::vector<std::string>& names);

/// The layouts by the folders in `base`. Each throws: SeveralMeant.
std::optional<Layout> layout_by_folders(const Base& base, const DataNeeds& needs);
/// Folders with the word of a part in their names: train_images, train_masks, or train, trainannot.
std::optional<Layout> layout_by_named_parts(const Base& base, const DataNeeds& needs);
/// OME-Zarr's plates, the Cell Tracking Challenge's sequences, or BIDS.
std::optional<Layout> layout_by_publisher(const Base& base, const DataNeeds& needs);

}  // namespace cytra::data
