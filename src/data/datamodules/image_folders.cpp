#include "data/datamodules/image_folders.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
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

using Places = std::vector<std::pair<std::string, fs::path>>;

/// The folders that a place with stars means, by the names that the stars stand for: "A/1/0".
Places places_of(const fs::path& place) {
  Places places{{"", ""}};
  for (const fs::path& part : place) {
    Places next;
    for (const auto& [name, path] : places) {
      if (part != kStar) next.emplace_back(name, path / part);
      if (part != kStar) continue;
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(path.empty() ? "." : path, ignored)) {
        const std::string own = entry.path().filename().string();
        if (entry.is_directory(ignored) && !io::is_left_out(entry))
          next.emplace_back(name.empty() ? own : name + "/" + own, entry.path());
      }
    }
    places = std::move(next);
  }
  return places;
}

/// The folders that have files, by the name that the stars stand for.
std::map<std::string, StarFolder> star_folders(const fs::path& place,
                                               bool is_recursive,
                                               const TakesFile& takes) {
  const bool may_be_images = place.filename() != kStar || std::ranges::count(place, kStar) > 1;
  std::map<std::string, StarFolder> folders;
  for (const auto& [own, path] : places_of(place)) {
    const fs::path folder = path.lexically_normal();
    if (!folder_exists(folder)) continue;
    StarFolder found{folder, {}};
    if (may_be_images && io::is_image_path(folder.string())) {  // wells, or labels in images
      found.files.push_back({folder.string(), own});
      folders.emplace(stem_of(own), std::move(found));
      continue;
    }
    for (const std::string& file : io::list_images(folder.string(), is_recursive)) {
      std::string name = fs::path(file).lexically_relative(folder).generic_string();
      if (takes(name))
        found.files.push_back({file, name});
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
  return above.empty() ? "." : above;
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
