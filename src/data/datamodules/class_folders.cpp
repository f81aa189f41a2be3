// ClassFolderDatamodule: DIR/train/CLASS/NAME.tif with one folder for each class, or
// DIR/CLASS/NAME.tif with the last `valid_fraction` of each class held out. Source:
// torchvision.datasets.ImageFolder.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/held_out.h"
#include "data/layout/layout_names.h"
#include "io/image_folder.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

/// The names of the folders in `place`, sorted.
std::vector<std::string> folders_in(const fs::path& place) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored)) {
    std::string name = entry.path().filename().string();
    if (entry.is_directory(ignored) && !io::is_left_out(entry)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

/// The folder that holds those of the classes: the path, or the only folder in it, as archives are
/// unpacked.
fs::path above_classes(fs::path place) {
  constexpr int kMostDepth = 4;
  for (int depth = 0; depth < kMostDepth; ++depth) {
    const std::vector<std::string> folders = folders_in(place);
    if (folders.size() != 1 || !part_in(place.string(), Split::train).empty() ||
        folders_in(place / folders[0]).empty())
      break;
    place /= folders[0];
  }
  return place;
}

class ClassFolderDatamodule final : public DataModule, public Parted {
 public:
  struct Options : LoaderOptions, HoldOutOptions {
    std::string path;
    std::vector<std::string> columns{"raw", "label"}, class_names;
    bool recursive = false;
    void visit(auto& v) {
      v("path",
        path,
        "folder with one folder of images for each class, or with train/, valid/, test/ that have "
        "these");
      v("columns", columns, "names of the image and of its class in a sample");
      v("class_names", class_names, "the folders, in the order of their classes' numbers");
      v("recursive", recursive, "also images in folders below those of the classes");
      HoldOutOptions::visit(v);
      LoaderOptions::visit(v);
    }
    void check() {
      LoaderOptions::check();
      FoldOptions::check();
      if (columns.size() != 2)
        throw ConfigError("columns: expected two names, the image's and its class's");
    }
  };
  explicit ClassFolderDatamodule(const Options& options)
      : options_(options), root_(above_classes(options.path)) {}

  std::vector<Sample> items(Split split) const override {
    if (!folder_exists(options_.path))
      throw ConfigError("data.path: {}: no such folder", options_.path);
    const bool is_training = split == Split::train || split == Split::valid;
    const std::string train = part_of(Split::train);  // "": the folder is not parted
    const std::string valid = train.empty() ? "" : part_of(Split::valid);
    expect_classes(train);
    if (options_.folds && (is_training || train.empty())) {
      std::vector<std::string> parts{train};
      if (!valid.empty()) parts.push_back(valid);
      return each_class(parts, [&](auto all) { return of_fold(options_, split, std::move(all)); });
    }
    if (!train.empty() && (!valid.empty() || !is_training)) {
      const std::string part = part_of(split);
      if (part.empty()) throw ConfigError("{}: no such folder", place_of(name_of(split)));
      return each_class({part}, [](auto all) { return all; });
    }
    return each_class({train}, [&](auto all) {
      return hold_out(std::move(all), options_.valid_fraction, split, options_.path);
    });
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (!options_.folds && !part_of(Split::train).empty() && !part_of(Split::valid).empty())
      expect_parted(train, valid);
  }

 private:
  /// The name of the folder of a part; "" where there is none.
  std::string part_of(Split split) const { return part_in(root_.string(), split); }
  std::string place_of(const std::string& part) const { return (root_ / part).string(); }
  /// Throws: ConfigError for folders that are not those of class_names, and for fewer than two.
  void expect_classes(const std::string& part) const {
    const std::vector<std::string> folders = folders_in(place_of(part));
    if (folders.size() < 2) {
      throw ConfigError("data.path: {}: {}, expected two or more, one for each class",
                        place_of(part),
                        folders.empty() ? "no folders in it" : "one folder in it, " + folders[0]);
    }
    std::vector<std::string> named = options_.class_names;
    std::ranges::sort(named);
    if (named == folders) return;
    throw ConfigError(
        "data.path: {}: the folders {}, but class_names is [{}]; expected class_names=[{}]",
        place_of(part),
        fmt::join(folders, ", "),
        fmt::join(options_.class_names, ", "),
        fmt::join(folders, ","));
  }
  std::vector<Sample> images_of(const std::string& part, const std::string& kind) const {
    const fs::path place = root_ / part / kind;
    std::vector<Sample> samples;
    if (!fs::is_directory(place)) return samples;
    for (std::string& path : io::list_images(place.string(), options_.recursive)) {
      Sample& sample = samples.emplace_back();
      sample.id = path;
      sample.sources[options_.columns[0]].path = std::move(path);
      sample.columns[options_.columns[1]] = kind;
    }
    return samples;
  }
  /// What `chosen` takes of the images of each class, which are those in `parts` ("": the folder
  /// itself).
  std::vector<Sample> each_class(const std::vector<std::string>& parts, const auto& chosen) const {
    std::vector<Sample> samples;
    for (const std::string& kind : folders_in(place_of(parts[0]))) {
      std::vector<Sample> all;
      for (const std::string& part : parts) append(all, images_of(part, kind));
      if (all.empty()) {
        throw DataError("{}: no images in this folder, expected those of the class {}",
                        (fs::path(place_of(parts[0])) / kind).string(),
                        kind);
      }
      append(samples, chosen(std::move(all)));
    }
    if (!samples.empty()) return samples;
    throw DataError("{}: no folders of classes", place_of(parts[0]));
  }
  Options options_;
  fs::path root_;
};
CYTRA_REGISTER(DataModule, ClassFolderDatamodule, "ClassFolderDatamodule");

}  // namespace
}  // namespace cytra::data
