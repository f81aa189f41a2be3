#include "data/datamodules/image_folders.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/error.h"
#include "data/layout/layout_names.h"
#include "io/image_folder.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStar = "*";

struct StarFolder {
  fs::path place;
  std::vector<FolderFile> files;
  std::size_t left_out = 0;
};

/// The folders that have files, by the name that `*` stands for.
std::map<std::string, StarFolder> star_folders(const fs::path& place,
                                               bool is_recursive,
                                               const TakesFile& takes) {
  const fs::path above = above_star(place);
  const fs::path below = place.lexically_relative(above / kStar);
  std::map<std::string, StarFolder> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(above, ignored)) {
    const std::string own = entry.path().filename().string();
    const fs::path folder = below == "." ? entry.path() : (entry.path() / below).lexically_normal();
    if (io::is_hidden(own) || !fs::is_directory(folder, ignored)) continue;
    StarFolder found{folder, {}};
    if (below != "." && io::is_image_path(folder.string())) {  // labels in an OME-Zarr
      found.files.push_back({folder.string(), own});
      folders.emplace(stem_of(own), std::move(found));
      continue;
    }
    for (const std::string& path : io::list_images(folder.string(), is_recursive)) {
      std::string name = fs::path(path).lexically_relative(folder).generic_string();
      if (takes(name))
        found.files.push_back({path, name});
      else
        ++found.left_out;
    }
    if (!found.files.empty()) folders.emplace(own, std::move(found));
  }
  return folders;
}

}  // namespace

bool has_star(const fs::path& place) {
  return std::ranges::find(place, kStar) != place.end();
}

fs::path above_star(const fs::path& place) {
  fs::path above;
  for (const fs::path& part : place) {
    if (part == kStar) break;
    above /= part;
  }
  return above;
}

std::vector<FolderFile> list_star(const fs::path& place,
                                  bool is_recursive,
                                  const std::set<std::string>& images,
                                  const TakesFile& takes) {
  const std::map<std::string, StarFolder> folders = star_folders(place, is_recursive, takes);
  const bool are_objects = std::ranges::any_of(folders, [&](const auto& folder) {
    return folder.second.files.size() > 1 && images.count(folder.first) > 0;
  });
  std::vector<FolderFile> all;
  for (const auto& [name, folder] : folders) {
    if (are_objects && images.count(name) > 0) {
      const bool has_image = place.filename() == kStar;  // the image is beside the masks
      if (folder.left_out > (has_image ? 1U : 0U)) {
        throw DataError(
            "{}: {} files are masks and {} others are not, expected one image and the masks of its "
            "objects alone",
            folder.place.string(),
            folder.files.size(),
            folder.left_out);
      }
      all.push_back({folder.place.string(), name});
      continue;
    }
    for (const FolderFile& file : folder.files)
      all.push_back({file.path, folder.files.size() == 1 ? name : name + "/" + file.name});
  }
  return all;
}

}  // namespace cytra::data
