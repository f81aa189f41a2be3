// FolderDatamodule: DIR/train/<column>/NAME.tif with one folder per column and equal names, or
// DIR/<column>/NAME.tif with the last `valid_fraction` of the names held out. Source of the
// filters: cyto_dl.datamodules.folder.make_folder_dataloader.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "base/warn_once.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/held_out.h"
#include "data/datamodules/image_folders.h"
#include "data/layout/folder_hint.h"
#include "data/layout/folder_layout.h"
#include "data/layout/layout_names.h"
#include "data/source_keys.h"
#include "io/annotations/annotations.h"
#include "io/image_folder.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

class FolderDatamodule final : public DataModule, public Parted {
 public:
  struct Options : LoaderOptions, HoldOutOptions, SourceKeyOptions {
    std::string path;
    std::vector<std::string> columns, folders, samples_columns;
    std::vector<std::string> regex, startswith, endswith, contains, excludes;
    bool recursive = false;
    void visit(auto& v) {
      v("path",
        path,
        "folder with one folder of images per column, or with train/, valid/, test/ that have "
        "these");
      v("columns",
        columns,
        "names of the images of a sample; those of one sample have one name (without extension)");
      SourceKeyOptions::visit(v);
      v("folders",
        folders,
        "folder of each column; null: its name; */images: of a folder for each image; "
        "{split}_images: with a word for train, valid and test");
      v("recursive", recursive, "also images in folders below, paired by their path");
      v("regex",
        regex,
        "names must begin like this, or, with a slash in it, paths below the folder; images with "
        "the "
        "same groups (...) are a sample; several targets of one are masks of its objects. This and "
        "the next: one for all columns, or one for each");
      v("startswith", startswith, "names must start with this text");
      v("endswith", endswith, "names must end with this text, extension included");
      v("contains", contains, "names must contain this text");
      v("excludes", excludes, "names must not contain this text");
      HoldOutOptions::visit(v);
      LoaderOptions::visit(v);
    }
    void check() {
      LoaderOptions::check();
      FoldOptions::check();
      samples_columns = columns;
      columns = read(columns);
      if (folders.empty()) folders = columns;
      if (folders.size() != columns.size()) {
        throw ConfigError(
            "folders: {}, expected one for each of {} columns", folders.size(), columns.size());
      }
      for (const auto& [name, filter] : {std::pair{"regex", &regex},
                                         std::pair{"startswith", &startswith},
                                         std::pair{"endswith", &endswith},
                                         std::pair{"contains", &contains},
                                         std::pair{"excludes", &excludes}}) {
        if (filter->size() > 1 && filter->size() != columns.size()) {
          throw ConfigError(
              "{}: {} texts, expected one, or one for each column", name, filter->size());
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
    if (!folder_exists(root)) throw ConfigError("data.path: {}: no such folder", options_.path);
    const std::string train = part_of(Split::train);  // "": the folder is not parted
    const std::string valid = train.empty() ? "" : part_of(Split::valid);
    const bool is_of_training = split == Split::train || split == Split::valid;
    if (options_.folds && (is_of_training || (split == Split::test && train.empty()))) {
      std::vector<Sample> all = pair_up(train);
      if (!valid.empty()) append(all, pair_up(valid));
      return of_fold(options_, split, std::move(all));
    }
    if (train.empty() || (valid.empty() && is_of_training))
      return hold_out(pair_up(train), options_.valid_fraction, split, options_.path);
    const std::string part = part_of(split);
    return pair_up(part.empty() ? name_of(split) : part);
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (!options_.folds && !part_of(Split::train).empty() && !part_of(Split::valid).empty())
      expect_parted(train, valid);
  }

 private:
  using File = FolderFile;

  /// The folder of a column in a part ("train"; "" where there are no parts): path/train/raw,
  /// path/raw/train, or path/train_raw of the folder {split}_raw.
  fs::path place_of(std::size_t column, const std::string& part) const {
    const fs::path root(options_.path);
    const std::string& name = options_.folders[column];
    if (name.find(kSplit) != std::string::npos) return root / with_part(name, part);
    if (part.empty() || folder_exists(root / part)) return (root / part / name).lexically_normal();
    return (root / name / part).lexically_normal();
  }
  /// The word by which folders stand for the part; "" where there are none.
  std::string part_of(Split split) const {
    const std::string& first = options_.folders[0];
    std::string word = part_in(options_.path, split, first);
    const fs::path root(options_.path);
    if (!word.empty() || options_.recursive) return word;
    word = part_in((root / first).string(), split);
    const auto has_it = [&](const std::string& name) { return folder_exists(root / name / word); };
    return std::ranges::all_of(options_.folders, has_it) ? word : "";
  }

  template <class T>
  static const T* of_column(const std::vector<T>& filter, std::size_t column) {
    return filter.empty() ? nullptr : &filter[filter.size() == 1 ? 0 : column];
  }

  /// Whether a file is used. `name`: its name in the folder, changed to the one that pairs it.
  bool takes(std::size_t column, std::string& name) const {
    const std::string file = name.substr(name.rfind('/') + 1);
    const auto is_refused = [&](const std::vector<std::string>& filter, const auto& fits) {
      const std::string* text = of_column(filter, column);
      return text != nullptr && !fits(*text);
    };
    const auto begins = [&](const std::string& text) { return file.starts_with(text); };
    const auto ends = [&](const std::string& text) { return file.ends_with(text); };
    const auto has = [&](const std::string& text) { return file.find(text) != std::string::npos; };
    const auto lacks = [&](const std::string& text) { return !has(text); };
    if (is_refused(options_.startswith, begins) || is_refused(options_.endswith, ends) ||
        is_refused(options_.contains, has) || is_refused(options_.excludes, lacks)) {
      return false;
    }
    const std::regex* expression = of_column(expressions_, column);
    std::smatch match;
    if (expression != nullptr &&
        of_column(options_.regex, column)->find('/') != std::string::npos) {
      if (!std::regex_search(name, match, *expression, std::regex_constants::match_continuous))
        return false;
      std::string key;
      for (std::size_t group = 1; group < match.size(); ++group) key += match[group].str() + "/";
      if (!key.empty()) name = key;
      return true;
    }
    const std::string folder = name.substr(0, name.size() - file.size());
    if (expression == nullptr) {
      name = stem_of(name);
      return true;
    }
    if (!std::regex_search(file, match, *expression, std::regex_constants::match_continuous))
      return false;
    if (match.size() < 2) {
      name = stem_of(name);
      return true;
    }
    const std::string bare = stem_of(file), group = match[1].str();  // `(.*)` is without .tif
    const auto begin = static_cast<std::size_t>(match.position(1));
    name = folder +
           (begin + group.size() > bare.size() && begin < bare.size() ? bare.substr(begin) : group);
    return true;
  }

  /// Lists the images of a column, sorted by path; `images`: those of the first column.
  std::vector<File> list(const fs::path& folder,
                         std::size_t column,
                         const std::vector<File>& images = {}) const {
    if (has_star(folder)) {
      std::set<std::string> names;
      for (const File& image : images) names.insert(image.name);
      std::vector<File> files = list_star(
          folder, options_.recursive, names, [&](auto& name) { return takes(column, name); });
      if (files.empty()) throw_nothing(folder);
      return files;
    }
    if (!fs::is_directory(folder)) throw ConfigError(folder.string() + ": no such folder");
    std::vector<File> files;
    std::vector<std::string> paths = io::list_images(folder.string(), options_.recursive);
    if (column > 0) {
      for (std::string& path : io::list_annotations(folder.string(), options_.recursive))
        paths.push_back(std::move(path));
    }
    for (const std::string& path : paths) {
      std::string name = fs::path(path).lexically_relative(folder).generic_string();
      if (takes(column, name)) files.push_back({path, decomposed(name)});
    }
    if (files.empty()) throw_nothing(folder);
    return files;
  }
  [[noreturn]] static void throw_nothing(const fs::path& folder) {
    throw DataError(folder.string() +
                    ": no images (.tif, .png, .nii, .zarr, ...) in this folder match data.regex "
                    "and the other filters");
  }

  /// The kinds of files that images have as partners, beside themselves.
  struct PartnerKinds {
    bool are_drawn = false;   // annotations are among them
    bool has_others = false;  // than .txt
    bool are_masks = false;   // one file for each object
  };
  static PartnerKinds kinds_of(const std::vector<File>& images,
                               const std::multimap<std::string, std::string>& by_name) {
    PartnerKinds kinds;
    for (const File& image : images) {
      const auto [begin, end] = by_name.equal_range(image.name);
      std::set<std::string> patterns;
      for (auto one = begin; one != end; ++one) {
        if (one->second == image.path) continue;
        patterns.insert(io::mask_pattern(one->second));
        kinds.are_drawn = kinds.are_drawn || io::is_annotation_path(one->second);
        kinds.has_others = kinds.has_others || !one->second.ends_with(".txt");
      }
      if (patterns.size() == 1 && *patterns.begin() != "" && std::distance(begin, end) > 1)
        kinds.are_masks = !kinds.are_drawn;
    }
    return kinds;
  }

  /// The partner of an image. Where there are several, the annotations are taken, as people save
  /// them beside the image, which is no partner of itself where others have annotations.
  static std::string partner_of(const File& image,
                                const std::multimap<std::string, std::string>& by_name,
                                const PartnerKinds& kinds) {
    const auto [begin, end] = by_name.equal_range(image.name);
    std::set<std::string> patterns;
    std::vector<std::string> paths, drawn;
    for (auto one = begin; one != end; ++one) {
      patterns.insert(io::mask_pattern(one->second));
      if (kinds.are_drawn && are_same_file(one->second, image.path)) continue;
      if (io::is_annotation_path(one->second)) drawn.push_back(one->second);
      paths.push_back(one->second);
    }
    if (kinds.are_masks && patterns.size() == 1) return *patterns.begin();
    if (paths.size() > 1 && drawn.size() == 1) return drawn[0];
    if (paths.size() > 1) {
      throw DataError("{}: several images are named '{}': {}, {}, expected one",
                      image.path,
                      image.name,
                      paths[0],
                      paths[1]);
    }
    return paths.empty() ? "" : paths[0];
  }

  /// The one file of all images, COCO's or CVAT's; "" where there is none.
  static std::string shared_by(const std::vector<File>& images,
                               const std::multimap<std::string, std::string>& by_name) {
    std::set<std::string> names;
    for (const File& image : images) names.insert(image.name);
    std::vector<std::string> others;
    for (const auto& [name, path] : by_name)
      if ((path.ends_with(".json") || path.ends_with(".xml")) && names.count(name) == 0)
        others.push_back(path);
    return others.size() == 1 && is_of_many(others[0]) ? others[0] : "";
  }

  std::vector<Sample> pair_up(const std::string& part) const {
    for (std::size_t column = 0; column < options_.folders.size(); ++column) {
      const fs::path folder = place_of(column, part);
      if (!folder_exists(has_star(folder) ? above_star(folder) : folder)) {
        throw ConfigError(folder.string() + ": no such folder" +
                          folder_hint((fs::path(options_.path) / part).lexically_normal().string(),
                                      options_.columns.size()));
      }
    }
    std::vector<Sample> samples;
    const std::vector<File> files = list(place_of(0, part), 0);
    for (const File& file : files) {
      Sample& sample = samples.emplace_back();
      sample.id = file.path;
      sample.sources[options_.columns.front()].path = file.path;
    }
    std::map<std::size_t, std::string> alone;  // images without a partner, and what is missing
    for (std::size_t column = 1; column < options_.columns.size(); ++column) {
      const fs::path folder = place_of(column, part);
      std::multimap<std::string, std::string> by_name;
      for (const File& file : list(folder, column, files)) by_name.emplace(file.name, file.path);
      const std::string shared = shared_by(files, by_name);
      const PartnerKinds kinds = kinds_of(files, by_name);
      std::size_t empty = 0;
      for (std::size_t i = 0; i < files.size(); ++i) {
        std::string partner = shared.empty() ? partner_of(files[i], by_name, kinds) : shared;
        if (partner.empty() && kinds.are_drawn && !kinds.has_others) {  // YOLO
          partner = (folder / (files[i].name + ".txt")).string();
          ++empty;
        } else if (partner.empty()) {
          alone.emplace(i,
                        fmt::format("no {} named '{}' in {}",
                                    kinds.are_drawn ? "annotations" : "image",
                                    files[i].name,
                                    folder.string()));
        }
        samples[i].sources[options_.columns[column]].path = partner;
      }
      if (empty > 0)
        warn_once(
            fmt::format("{}: {} of {} images have no .txt, which means no objects, as in YOLO",
                        folder.string(),
                        empty,
                        files.size()));
    }
    leave_out(alone, samples);
    join_sources(options_.source_keys, options_.joined, options_.samples_columns, samples);
    return samples;
  }

  /// Reports images without a partner, by an error or one line.
  void leave_out(const std::map<std::size_t, std::string>& alone,
                 std::vector<Sample>& samples) const {
    if (alone.empty()) return;
    const auto& [first, why] = *alone.begin();
    const bool are_all = alone.size() == samples.size();
    if (options_.on_error == "fail" || are_all) {
      throw DataError(
          "{}: {}{}",
          samples[first].id,
          why,
          are_all
              ? std::string()
              : fmt::format("; of {} images {} {} no partner, which data.on_error=skip leaves out",
                            samples.size(),
                            alone.size(),
                            alone.size() == 1 ? "has" : "have"));
    }
    warn_once(fmt::format("{}: {}; {} of {} images are left out for that",
                          samples[first].id,
                          why,
                          alone.size(),
                          samples.size()));
    std::vector<Sample> kept;
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (alone.count(i) == 0) kept.push_back(std::move(samples[i]));
    samples = std::move(kept);
  }

  Options options_;
  std::vector<std::regex> expressions_;
};
CYTRA_REGISTER(DataModule, FolderDatamodule, "FolderDatamodule");

}  // namespace
}  // namespace cytra::data
