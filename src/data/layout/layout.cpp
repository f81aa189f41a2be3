// Finds the layout of a data set: one search through a folder, its parts and the data sets below
// it.
#include "data/layout/layout.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "data/layout/folder_hint.h"
#include "data/layout/layout_names.h"
#include "data/layout/layout_table.h"
#include "io/annotations/annotations.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

/// Thrown where several layouts fit, and the user has to choose.
struct SeveralMeant : ConfigError {
  using ConfigError::ConfigError;
};

/// The content of a folder, without that of its subfolders.
struct Holding {
  std::string name;                                       // below the base; ".": the base itself
  std::vector<std::string> images, annotations, folders;  // names
  std::string foreign;                                    // the path of one that is not read
};

Holding look_into(const fs::path& folder, const std::string& name) {
  Holding holding{name, {}, {}, {}, ""};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string own = entry.path().filename().string();
    if (io::is_hidden(own)) continue;
    std::error_code ignored;  // a loop of links
    const bool is_folder = entry.is_directory(ignored);
    if (io::is_image_path(entry.path().string())) {
      holding.images.push_back(own);
    } else if (is_folder) {
      holding.folders.push_back(own);
    } else if (io::is_annotation_path(entry.path().string())) {
      holding.annotations.push_back(own);
    } else if (!io::conversion_of(own).empty()) {
      holding.foreign = entry.path().string();
    }
  }
  for (auto* names : {&holding.images, &holding.annotations, &holding.folders})
    std::sort(names->begin(), names->end());
  return holding;
}

bool is_coco_file(const fs::path& path) {
  try {
    return path.extension() == ".json" && !io::coco_images(path.string()).empty();
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> stems_of(const std::vector<std::string>& names) {
  std::vector<std::string> stems;
  for (const std::string& name : names) stems.push_back(stem_of(name));
  return stems;
}

/// The place where the folders of a data set begin: `prefix` below the path; no prefix for train/.
struct Base {
  fs::path place;
  std::string prefix;
};

bool has_partners(const std::vector<std::string>& images, const std::vector<std::string>& others) {
  std::set<std::string> names;
  for (const std::string& image : images) names.insert(decomposed(stem_of(image)));
  return std::ranges::any_of(others, [&](const std::string& other) {
    return names.count(decomposed(stem_of(other))) > 0;
  });
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "/" + name;
}

class FolderLayout {
 public:
  FolderLayout(const Base& base, const DataNeeds& needs) : base_(base), needs_(needs) {
    holdings_.push_back(look_into(base.place, "."));
    for (const std::string& name : holdings_.front().folders) {
      if (names_split(name)) continue;
      Holding below = look_into(base.place / name, name);
      std::error_code ignored;
      if (below.images.empty() && below.annotations.empty() &&
          fs::is_directory(base.place / name / "train", ignored))
        below = look_into(base.place / name / "train", name);
      holdings_.push_back(std::move(below));
    }
  }

  std::optional<Layout> find() const {
    if (std::optional<Layout> layout = folder_per_image()) return layout;
    const Holding* source = find_source();
    if (source == nullptr) return {};
    if (!needs_.has_target) return of({source->name}, {});
    const Holding* target = find_target(*source);
    if (target == nullptr) {
      std::optional<Layout> layout = in_one(*source);
      if (!layout) refuse_foreign();
      return layout;
    }
    if (target->images.empty() || has_partners(source->images, target->annotations))
      return of({source->name, target->name}, {});
    return of({source->name, target->name},
              regex_of_folders(stems_of(source->images), stems_of(target->images)));
  }

 private:
  std::string place_of(const std::string& name) const {
    if (name == ".") return base_.prefix.empty() ? name : base_.prefix;
    return joined(base_.prefix, name);
  }

  Layout of(const std::vector<std::string>& names, const std::vector<std::string>& regex) const {
    Layout layout;
    layout.module = "folder";
    std::vector<std::string> folders;
    for (const std::string& name : names) folders.push_back(place_of(name));
    const std::vector<std::string> usual = {needs_.source_col, needs_.target_col};
    if (!std::equal(folders.begin(), folders.end(), usual.begin()))
      layout.settings.emplace_back("data.folders", folders);
    if (!regex.empty()) layout.settings.emplace_back("data.regex", regex);
    layout.text = fmt::format("images in {}", folders[0] == "." ? "the folder itself" : folders[0]);
    if (folders.size() > 1)
      layout.text +=
          folders[1] == folders[0] ? ", targets beside them" : ", targets in " + folders[1];
    return layout;
  }

  /// The layout with a folder for each image: NAME/images/a.png and NAME/masks/*.png, as in DSB
  /// 2018, or NAME/a.png and NAME/mask_*.png.
  std::optional<Layout> folder_per_image() const {
    std::vector<ImageFolder> folders;
    for (const Holding& one : holdings_) {
      if (one.name == "." && !one.images.empty()) return {};
      if (one.name != ".") folders.push_back({one.images, one.folders});
    }
    const std::vector<std::string> regex = regex_of_image_folders(folders);
    if (!regex.empty()) return of_image_folders({"*", "*"}, regex);
    const std::vector<std::string> below =
        columns_of_image_folders(folders, needs_.source_col, needs_.target_col);
    if (below.empty()) return {};
    return of_image_folders({"*/" + below[0], "*/" + below[1]}, {});
  }
  Layout of_image_folders(std::vector<std::string> names, std::vector<std::string> regex) const {
    if (!needs_.has_target) {
      names.resize(1);
      regex.resize(std::min<std::size_t>(regex.size(), 1));
    }
    return of(names, regex);
  }

  /// Throws for targets of a kind that is not read.
  void refuse_foreign() const {
    for (const Holding& one : holdings_) {
      if (one.foreign.empty() || !names_target(one.name) || !one.images.empty()) continue;
      throw ConfigError("data.path: {}: not read; {}", one.foreign, io::conversion_of(one.foreign));
    }
  }

  const Holding* named(const std::string& name) const {
    const auto found = std::ranges::find_if(holdings_, [&](const Holding& one) {
      return one.name == name && one.images.size() + one.annotations.size() > 0;
    });
    return found == holdings_.end() ? nullptr : &*found;
  }

  [[noreturn]] void fail_several(const std::vector<const Holding*>& sources,
                                 const std::vector<const Holding*>& targets) const {
    std::vector<std::string> lines;
    for (const Holding* source : sources) {
      for (const Holding* target : targets) {
        if (source == target) continue;
        std::vector<std::string> folders = {place_of(source->name)};
        if (needs_.has_target) folders.push_back(place_of(target->name));
        lines.push_back("data=folder " + folders_word(folders));
      }
    }
    if (lines.size() > 6) lines.resize(6);
    throw SeveralMeant("data.path: {}: several folders may be meant; type {}",
                       base_.place.string(),
                       join(lines, ", or "));
  }

  const Holding* find_source() const {
    if (const Holding* exact = named(needs_.source_col)) return exact;
    std::vector<const Holding*> found, known;
    for (const Holding& one : holdings_) {
      if (one.name == "." || one.images.empty() || names_target(one.name)) continue;
      found.push_back(&one);
      if (names_source(one.name)) known.push_back(&one);
    }
    if (known.size() == 1) return known[0];
    if (found.size() == 1) return found[0];
    if (found.empty()) return holdings_.front().images.empty() ? nullptr : &holdings_.front();
    std::vector<const Holding*> targets;
    for (const Holding& one : holdings_)
      if (names_target(one.name) && one.images.size() + one.annotations.size() > 0)
        targets.push_back(&one);
    if (targets.empty() && needs_.has_target) return nullptr;  // folders with something else
    fail_several(known.size() > 1 ? known : found, targets.empty() ? found : targets);
  }

  bool is_target_of(const Holding& source, const Holding& one) const {
    if (one.name == "." || &one == &source) return false;
    return !one.images.empty() || has_annotations(source, one);
  }
  bool has_annotations(const Holding& source, const Holding& one) const {
    return has_partners(source.images, one.annotations) ||
           (one.annotations.size() == 1 &&
            is_coco_file(base_.place / one.name / one.annotations[0]));
  }

  /// The folder of the targets; null where there is none.
  const Holding* find_target(const Holding& source) const {
    const Holding* exact = named(needs_.target_col);
    if (exact != nullptr && exact != &source) return exact;
    std::vector<const Holding*> targets, others, liked;
    for (const Holding& one : holdings_) {
      if (!is_target_of(source, one)) continue;
      (names_target(one.name) ? targets : others).push_back(&one);
    }
    if (targets.size() == 1) return targets[0];
    if (targets.empty()) {
      const bool is_pair = others.size() == 1 && names_source(source.name) &&
                           has_partners(source.images, others[0]->images);
      return is_pair ? others[0] : nullptr;
    }
    for (const Holding* one : targets)
      if (one->images.empty() == needs_.prefers_annotations) liked.push_back(one);
    if (liked.size() == 1) return liked[0];
    fail_several({&source}, liked.empty() ? targets : liked);
  }

  /// The layout with images and targets in one folder.
  std::optional<Layout> in_one(const Holding& source) const {
    const std::vector<std::string> regex = regex_of_one_folder(stems_of(source.images));
    const bool has_own = has_annotations(source, source);
    if (has_own && (regex.empty() || needs_.prefers_annotations))
      return of({source.name, source.name}, {});
    if (regex.empty()) return {};
    return of({source.name, source.name}, regex);
  }

  const Base& base_;
  const DataNeeds& needs_;
  std::vector<Holding> holdings_;
};

/// The layout of folders that the user typed: how the names of their files are paired.
std::optional<Layout> of_typed_folders(const fs::path& path, const DataNeeds& needs) {
  std::error_code ignored;
  const fs::path place = fs::is_directory(path / "train", ignored) ? path / "train" : path;
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

/// Checks that there are no parts below a folder that is not the path itself, as data=folder can't
/// separate them.
void expect_no_parts(const Base& base) {
  std::error_code ignored;
  for (const char* name : {"valid", "val", "validation"}) {
    if (base.prefix.empty() || !fs::is_directory(base.place / name, ignored)) continue;
    throw ConfigError("data.path: train and {} are in a folder below: type {}",
                      name,
                      path_word(base.place.string()));
  }
}

/// The layout of the folder itself, or of its train/.
std::optional<Layout> of_base(const Base& base, const DataNeeds& needs) {
  if (auto layout = FolderLayout(base, needs).find()) return layout;
  for (const char* name : {"train", "training", "stage1_train"}) {
    std::error_code ignored;
    if (!fs::is_directory(base.place / name, ignored)) continue;
    const bool is_part = base.prefix.empty() && std::string(name) == "train";
    const Base below{base.place / name, is_part ? "" : joined(base.prefix, name)};
    std::optional<Layout> layout = FolderLayout(below, needs).find();
    if (layout) expect_no_parts(base);
    if (layout) return layout;
  }
  return {};
}

/// Whether a file in the folder describes its images: then data.path must name that folder itself.
bool is_described(const fs::path& place) {
  std::error_code none;
  const auto has = [&](const char* name) { return fs::exists(place / name, none); };
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
  constexpr int kMostDepth = 4;  // nested folders, as archives are unpacked
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

std::optional<Layout> layout_of(const std::string& path, const DataNeeds& needs) {
  std::error_code ignored;
  const fs::path place(path);
  const auto holds = [&](const char* name) { return fs::exists(place / name, ignored); };
  if (!needs.folders.empty()) return of_typed_folders(place, needs);
  if (!fs::is_directory(place, ignored)) {
    const std::string ending = in_small_letters(place.extension().string());
    if (ending == ".csv" || ending == ".tsv") return layout_of_table(path, true, needs);
    if (ending != ".json") return {};
    if (place.filename() == "dataset.json" && fs::exists(place.parent_path() / "imagesTr", ignored))
      return layout_of(place.parent_path().empty() ? "." : place.parent_path().string(), needs);
    if (is_coco_file(place)) return Layout{"coco", {}, "annotations of COCO"};
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
