#pragma once
// Data sets with a folder for each image: DIR/*/images and DIR/*/masks, where `*` is the image's
// name.
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cytra::data {

struct FolderFile {
  std::string path, name;  // `name` pairs it with others
};

/// Changes a file's name in its folder to the one that pairs it; false for a file that is left
/// out.
using TakesFile = std::function<bool(std::string& name)>;

/// Whether one of the folders in `place` is `*`.
bool has_star(const std::filesystem::path& place);
/// The part of `place` before its `*`.
std::filesystem::path above_star(const std::filesystem::path& place);

/// The files of all folders that match `place`, sorted. A file that is alone in its folder gets
/// the name that `*` stands for; others have their own name after it. Where one of `images` (such
/// names) has several files, each folder is a target with a mask for each object
/// (io/annotations/annotations.h). Throws: DataError where such a folder has files that are left
/// out; what io::list_images() throws.
std::vector<FolderFile> list_star(const std::filesystem::path& place,
                                  bool is_recursive,
                                  const std::set<std::string>& images,
                                  const TakesFile& takes);

}  // namespace cytra::data
