#pragma once
// A folder for each image: DIR/*/images and DIR/*/masks, `*` being the name of the image.
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cytra::data {

struct FolderFile {
  std::string path, name;  // `name` pairs it with others
};

/// Changes a file's name in its folder to what pairs it; false for one that is left out.
using TakesFile = std::function<bool(std::string& name)>;

/// Whether a folder among the parts of `place` is any: `*`.
bool has_star(const std::filesystem::path& place);
/// `place` up to its `*`.
std::filesystem::path above_star(const std::filesystem::path& place);

/// The files of all folders that `place` fits, sorted. A file that is alone in its folder has the
/// name that `*` stands for, others have their own behind it. Where one of `images` (names of that
/// kind) has several files, each folder is a target: it has a mask for each object
/// (io/annotations/annotations.h). Throws: DataError where such a folder has files that are left
/// out; as io::list_images().
std::vector<FolderFile> list_star(const std::filesystem::path& place,
                                  bool is_recursive,
                                  const std::set<std::string>& images,
                                  const TakesFile& takes);

}  // namespace cytra::data
