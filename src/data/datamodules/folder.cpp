// FolderDatamodule: DIR/train/<column>/NAME.tif with one folder per column and equal names, or
// DIR/<column>/NAME.tif with the last `valid_fraction` of the names held out. Source of the
// filters: cyto_dl.datamodules.folder.make_folder_dataloader.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/folder_hint.h"
#include "data/folds.h"
#include "io/annotations.h"
#include "io/image_folder.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

/// "a" of a.tif, a.ome.tif, a.nii.gz and a.ome.zarr: the name that its partners share.
std::string stem(std::string name) {
  const auto cut = [&](const char* extension) {
    const std::size_t length = std::string_view(extension).size();
    if (name.size() > length && ends_with(name, extension)) name.resize(name.size() - length);
  };
  cut(".gz");
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0 && name.find('/', dot) == std::string::npos)
    name.resize(dot);
  cut(".ome");
  return name;
}

bool is_coco(const std::string& path) {
  return ends_with(path, ".json") && !io::coco_images(path).empty();
}

class FolderDatamodule final : public DataModule {
 public:
  struct Options : LoaderOptions, FoldOptions {
    std::string path;
    std::vector<std::string> columns, folders;
    std::vector<std::string> regex, startswith, endswith, contains, excludes;
    bool recursive = false;
    double valid_fraction = 0.2;
    template <class V>
    void visit(V& v) {
      v("path",
        path,
        "folder with one folder of images per column, or with train/, valid/, test/ that have "
        "these");
      v("columns",
        columns,
        "names of the images of a sample; those of one sample have one name (without extension)");
      v("folders", folders, "folder of each column; null: its name");
      v("recursive", recursive, "also images in folders below, paired by their path");
      v("regex",
        regex,
        "names must begin like this; images with the same first group (...) are a sample. This and "
        "the next: one for all columns, or one for each");
      v("startswith", startswith, "names must start with this text");
      v("endswith", endswith, "names must end with this text, extension included");
      v("contains", contains, "names must contain this text");
      v("excludes", excludes, "names must not contain this text");
      v("valid_fraction",
        valid_fraction,
        "share held out for validation when there is no train/",
        0,
        1);
      FoldOptions::visit(v);
      LoaderOptions::visit(v);
    }
    void check() {
      LoaderOptions::check();
      FoldOptions::check();
      if (folders.empty()) folders = columns;
      if (folders.size() != columns.size()) {
        throw ConfigError(fmt::format(
            "folders: {}, expected one for each of {} columns", folders.size(), columns.size()));
      }
      for (const auto& [name, filter] : {std::pair{"regex", &regex},
                                         std::pair{"startswith", &startswith},
                                         std::pair{"endswith", &endswith},
                                         std::pair{"contains", &contains},
                                         std::pair{"excludes", &excludes}}) {
        if (filter->size() > 1 && filter->size() != columns.size()) {
          throw ConfigError(fmt::format(
              "{}: {} texts, expected one, or one for each column", name, filter->size()));
        }
      }
      for (const std::string& text : regex) {
        try {
          std::regex{text};
        } catch (const std::regex_error&) {
          throw ConfigError("regex: '" + text + "', expected a regular expression");
        }
      }
    }
  };
  explicit FolderDatamodule(const Options& options) : options_(options) {
    for (const std::string& text : options.regex) expressions_.emplace_back(text);
  }

  std::vector<Sample> items(Split split) const override {
    if (options_.columns.empty())
      throw ConfigError("data.columns is not set: name the folders to read, e.g. [raw, seg]");
    const fs::path root(options_.path);
    std::error_code ignored;  // a name too long
    if (!fs::is_directory(root, ignored))
      throw ConfigError(fmt::format("data.path: {}: no such folder", options_.path));
    const bool is_parted = fs::is_directory(root / "train", ignored);
    const bool is_of_fold =
        split == Split::train || split == Split::valid || (split == Split::test && !is_parted);
    if (options_.folds && is_of_fold) {
      std::vector<Sample> all = pair_up(is_parted ? root / "train" : root);
      if (is_parted && fs::is_directory(folder_of(Split::valid), ignored)) {
        std::vector<Sample> more = pair_up(folder_of(Split::valid));
        std::move(more.begin(), more.end(), std::back_inserter(all));
      }
      return of_fold(options_, split, std::move(all));
    }
    if (is_parted) return pair_up(folder_of(split));
    std::vector<Sample> all = pair_up(root);
    const auto held_out = static_cast<std::ptrdiff_t>(
        std::lround(static_cast<double>(all.size()) * options_.valid_fraction));
    const auto middle = all.end() - held_out;
    if (split == Split::train) all.erase(middle, all.end());
    if (split == Split::valid || split == Split::test) all.erase(all.begin(), middle);
    if (all.empty()) {
      throw DataError(fmt::format("{}: no images are left for {}; change data.valid_fraction",
                                  options_.path,
                                  name_of(split)));
    }
    return all;
  }
  const LoaderOptions& loader() const override { return options_; }

 private:
  struct File {
    std::string path, name;  // `name` pairs it with others
  };

  /// Of a split: valid/, or what others call it.
  fs::path folder_of(Split split) const {
    const fs::path root(options_.path);
    std::error_code ignored;
    for (const char* name : {"val", "validation"}) {
      if (split == Split::valid && !fs::is_directory(root / "valid", ignored) &&
          fs::is_directory(root / name, ignored))
        return root / name;
    }
    return root / name_of(split);
  }

  template <class T>
  static const T* of_column(const std::vector<T>& filter, std::size_t column) {
    return filter.empty() ? nullptr : &filter[filter.size() == 1 ? 0 : column];
  }

  /// False for a file that is left out. `name` as given in the folder, then what pairs it.
  bool takes(std::size_t column, std::string& name) const {
    const std::string file = name.substr(name.rfind('/') + 1);
    const auto is_refused = [&](const std::vector<std::string>& filter, const auto& fits) {
      const std::string* text = of_column(filter, column);
      return text != nullptr && !fits(*text);
    };
    const auto begins = [&](const std::string& text) { return starts_with(file, text); };
    const auto ends = [&](const std::string& text) { return ends_with(file, text); };
    const auto has = [&](const std::string& text) { return file.find(text) != std::string::npos; };
    const auto lacks = [&](const std::string& text) { return !has(text); };
    if (is_refused(options_.startswith, begins) || is_refused(options_.endswith, ends) ||
        is_refused(options_.contains, has) || is_refused(options_.excludes, lacks)) {
      return false;
    }
    const std::string folder = name.substr(0, name.size() - file.size());
    const std::regex* expression = of_column(expressions_, column);
    std::smatch match;
    if (expression == nullptr) {
      name = stem(name);
      return true;
    }
    if (!std::regex_search(file, match, *expression, std::regex_constants::match_continuous))
      return false;
    name = match.size() > 1 ? folder + match[1].str() : stem(name);
    return true;
  }

  /// The images of a column, sorted by path.
  std::vector<File> list(const fs::path& folder, std::size_t column) const {
    if (!fs::is_directory(folder)) throw ConfigError(folder.string() + ": no such folder");
    std::vector<File> files;
    std::vector<std::string> paths = io::list_images(folder.string(), options_.recursive);
    if (column > 0) {
      for (std::string& path : io::list_annotations(folder.string(), options_.recursive))
        paths.push_back(std::move(path));
    }
    for (const std::string& path : paths) {
      std::string name = fs::path(path).lexically_relative(folder).generic_string();
      if (takes(column, name)) files.push_back({path, name});
    }
    if (files.empty()) {
      throw DataError(folder.string() +
                      ": no images (.tif, .png, .nii, .zarr, ...) in this folder that data.regex "
                      "and the other filters take");
    }
    return files;
  }

  std::vector<Sample> pair_up(const fs::path& root) const {
    for (const std::string& name : options_.folders) {
      std::error_code ignored;
      if (!fs::is_directory(root / name, ignored)) {
        throw ConfigError((root / name).string() + ": no such folder" +
                          folder_hint(root.string(), options_.columns.size()));
      }
    }
    std::vector<Sample> samples;
    const fs::path first = (root / options_.folders.front()).lexically_normal();
    const std::vector<File> files = list(first, 0);
    for (const File& file : files) {
      Sample& sample = samples.emplace_back();
      sample.id = file.path;
      sample.sources[options_.columns.front()].path = file.path;
    }
    for (std::size_t column = 1; column < options_.columns.size(); ++column) {
      const fs::path folder = (root / options_.folders[column]).lexically_normal();
      std::multimap<std::string, std::string> by_name;
      for (const File& file : list(folder, column)) by_name.emplace(file.name, file.path);
      // One file of COCO is of all images.
      const std::string shared = by_name.size() == 1 && is_coco(by_name.begin()->second)
                                     ? by_name.begin()->second
                                     : "";
      for (std::size_t i = 0; i < files.size(); ++i) {
        if (!shared.empty()) {
          samples[i].sources[options_.columns[column]].path = shared;
          continue;
        }
        const auto [partner, end] = by_name.equal_range(files[i].name);
        if (partner == end) {
          throw DataError(fmt::format(
              "{}: no image named '{}' in {}", files[i].path, files[i].name, folder.string()));
        }
        if (std::next(partner) != end) {
          throw DataError(fmt::format("{}: several images are named '{}': {}, {}, expected one",
                                      files[i].path,
                                      files[i].name,
                                      partner->second,
                                      std::next(partner)->second));
        }
        samples[i].sources[options_.columns[column]].path = partner->second;
      }
    }
    return samples;
  }
  Options options_;
  std::vector<std::regex> expressions_;
};
CYTRA_REGISTER(DataModule, FolderDatamodule, "FolderDatamodule");

}  // namespace
}  // namespace cytra::data
