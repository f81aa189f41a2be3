// Finds the layout of a data set: one search through a folder, its parts and the data sets below
// it.
#include "data/layout/layout.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/strings.h"
#include "data/layout/folder_hint.h"
#include "data/layout/folder_layout.h"
#include "data/layout/layout_names.h"
#include "data/layout/layout_table.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

constexpr int kMostDepth = 4;  // nested folders, as archives are unpacked

/// The layout of folders that the user typed: how the names of their files are paired.
std::optional<Layout> of_typed_folders(const fs::path& path, const DataNeeds& needs) {
  const fs::path place = path / part_in(path.string(), Split::train);
  if (needs.folders.size() != 2) return {};
  const Holding images = look_into(place / needs.folders[0], "."),
                targets = look_into(place / needs.folders[1], ".");
  std::vector<std::string> regex;
  if (needs.folders[0] == needs.folders[1]) {
    if (!has_partners(images.images, images.annotations))
      regex = regex_of_one_folder(stems_of(images.images));
  } else if (!has_partners(images.images, targets.images) &&
             !has_partners(images.images, targets.annotations)) {
    regex = regex_of_folders(stems_of(images.images), stems_of(targets.images));
  }
  if (regex.empty()) return {};
  return Layout{"folder", {{"data.regex", regex}}, "the names of the files"};
}

/// The layout of the folder itself, or of its train/.
std::optional<Layout> of_base(const Base& base, const DataNeeds& needs) {
  if (auto layout = layout_by_publisher(base, needs)) return layout;
  if (auto layout = layout_by_named_parts(base, needs)) return layout;
  if (auto layout = layout_by_folders(base, needs)) return layout;
  for (const std::string& name :
       {part_in(base.place.string(), Split::train), std::string("stage1_train")}) {
    if (name.empty() || !folder_exists(base.place / name)) continue;
    const std::string part = name == "stage1_train" ? name : base.prefix.empty() ? "" : "{split}";
    const Base below{base.place / name, part.empty() ? "" : joined(base.prefix, part)};
    if (auto layout = layout_by_folders(below, needs)) return layout;
  }
  return {};
}

/// Whether a file in the folder describes its images: then data.path must name that folder itself.
bool is_described(const fs::path& place) {
  const auto has = [&](const char* name) { return path_exists(place / name); };
  return has("train.csv") || has("train.tsv") || (has("dataset.json") && has("imagesTr"));
}

/// The data sets in the folders of a repository, or of an archive that has other folders as well.
struct SetsBelow {
  std::vector<std::string> words;  // data.path=...
  std::optional<Layout> layout;    // the only one has it
  std::string error;               // where the only one's layout is unknown
};

SetsBelow sets_below(const Base& base, const DataNeeds& needs) {
  constexpr std::size_t kMostFolders = 12;  // more folders hold an image or a patient each
  SetsBelow sets;
  const std::vector<std::string> folders = look_into(base.place, ".").folders;
  if (!needs.has_target || folders.size() > kMostFolders) return sets;
  for (const std::string& name : folders) {
    if (names_split(name)) continue;
    const Base below{base.place / name, joined(base.prefix, name)};
    try {
      std::optional<Layout> layout;
      if (!is_described(below.place) && !(layout = of_base(below, needs))) continue;
      sets.layout = std::move(layout);
    } catch (const SeveralMeant& several) {
      sets.error = several.what();
    } catch (const ConfigError&) {  // its files are of a kind that is not read
      continue;
    }
    sets.words.push_back(path_word(below.place.string()));
  }
  return sets;
}

std::optional<Layout> of_sets_below(const Base& base, const DataNeeds& needs) {
  const SetsBelow sets = sets_below(base, needs);
  if (sets.words.empty() || (sets.words.size() == 1 && sets.layout)) return sets.layout;
  if (sets.words.size() == 1 && !sets.error.empty()) throw ConfigError(sets.error);
  throw ConfigError("data.path: {}: {} in it; type {}",
                    base.place.string(),
                    sets.words.size() > 1 ? "several data sets are" : "a data set is",
                    join(sets.words, ", or "));
}

std::optional<Layout> of_folders(const fs::path& path, const DataNeeds& needs) {
  Base base{path, ""};
  for (int depth = 0; depth < kMostDepth; ++depth) {
    try {
      if (auto layout = of_base(base, needs)) return layout;
    } catch (const SeveralMeant& several) {
      const std::vector<std::string> words = sets_below(base, needs).words;
      if (words.empty()) throw;
      throw ConfigError("{}, or {}", several.what(), join(words, ", or "));
    }
    const std::vector<std::string> folders = look_into(base.place, ".").folders;
    if (folders.size() != 1 || is_described(base.place / folders[0])) break;
    base = {base.place / folders[0], joined(base.prefix, folders[0])};
  }
  return of_sets_below(base, needs);
}

}  // namespace

std::string described_in(const std::string& path) {
  const auto is_one = [&](const fs::path& place) {
    return path_exists(place / "dataset.json") && path_exists(place / "imagesTr");
  };
  fs::path place = path;
  for (int depth = 0; depth < kMostDepth && !is_one(place); ++depth) {
    const std::vector<std::string> folders = look_into(place, ".").folders;
    if (folders.size() != 1) return path;
    place /= folders[0];
  }
  return is_one(place) ? place.string() : path;
}

std::optional<Layout> layout_of(const std::string& path, const DataNeeds& needs) {
  const fs::path place = described_in(path);
  const auto holds = [&](const char* name) { return path_exists(place / name); };
  if (!needs.folders.empty()) return of_typed_folders(place, needs);
  if (!folder_exists(place)) {
    const std::string ending = in_small_letters(place.extension().string());
    if (ending == ".csv" || ending == ".tsv") return layout_of_table(path, true, needs);
    if (ending == ".xml" && is_of_many(place)) return Layout{"coco", {}, "annotations of CVAT"};
    if (ending != ".json") return {};
    if (place.filename() == "dataset.json" && path_exists(place.parent_path() / "imagesTr"))
      return layout_of(place.parent_path().empty() ? "." : place.parent_path().string(), needs);
    if (is_of_many(place)) return Layout{"coco", {}, "annotations of COCO"};
    return Layout{"decathlon", {}, "a list of images in JSON"};
  }
  for (const char* name : {"train.csv", "train.tsv"})
    if (holds(name)) return layout_of_table((place / name).string(), false, needs);
  if (holds("imagesTr") && holds("dataset.json")) {
    const Holding images = look_into(place / "imagesTr", ".");
    const bool has_channels = std::ranges::any_of(
        images.images, [](const std::string& name) { return stem_of(name).ends_with("_0000"); });
    return has_channels ? Layout{"nnunet", {}, "nnU-Net's folders"}
                        : Layout{"decathlon", {}, "dataset.json of the Decathlon"};
  }
  return of_folders(place, needs);
}

}  // namespace cytra::data
