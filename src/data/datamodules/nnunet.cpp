// NnUnetDatamodule: nnU-Net's raw data sets: dataset.json with imagesTr/CASE_0000.ext (a file per
// channel), labelsTr/CASE.ext and imagesTs. Source: nnU-Net 2.6's documentation/dataset_format.md,
// nnunetv2.utilities.{utils, crossval_split}; version 1's dataset.json by its own documentation.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "base/warn_once.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/description.h"
#include "data/datamodules/folds.h"
#include "data/datamodules/json_list.h"
#include "data/layout/layout.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

struct Case {
  std::vector<std::string> images;  // a file per channel
  std::string label;                // "": none
};
using Cases = std::map<std::string, Case>;  // by identifier, sorted as nnU-Net sorts them

class NnUnetDatamodule final : public DataModule, public Described, public Parted {
 public:
  struct Options : LoaderOptions {
    std::string path;
    std::vector<std::string> columns{"image", "label"};
    int64_t fold = 0;
    std::optional<std::string> splits_file;
    void visit(auto& v) {
      v("path", path, "folder with dataset.json, imagesTr and labelsTr");
      v("columns", columns, "keys of the image and the label");
      v("fold", fold, "which part is for validation", 0, 1e6);
      v("splits_file",
        splits_file,
        "nnU-Net's splits_final.json; null: the folder's own, else nnU-Net's 5 folds (of fewer "
        "cases as many)");
      LoaderOptions::visit(v);
    }
    void check() const {
      LoaderOptions::check();
      if (columns.size() != 2) throw ConfigError("columns: expected two: of image and label");
    }
  };
  explicit NnUnetDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    const fs::path root = folder();
    const DataSet set{root, (root / "dataset.json").string()};
    Cases cases;
    if (split == Split::train || split == Split::valid) {
      cases = of_fold(set, set.training(), split == Split::valid);
    } else {
      cases = set.tests();
    }
    std::vector<Sample> samples;
    for (const auto& [name, one] : cases) {
      Sample& sample = samples.emplace_back();
      sample.id = one.images.front();
      Source& image = sample.sources[options_.columns[0]];
      image.path = one.images.front();
      image.more.assign(one.images.begin() + 1, one.images.end());
      if (!one.label.empty() && split != Split::predict)
        sample.sources[options_.columns[1]].path = one.label;
    }
    return samples;
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (options_.splits_file || is_there((folder() / "splits_final.json").string()))
      expect_parted(train, valid);
  }
  DatasetDescription description() const override {
    return read_description((folder() / "dataset.json").string());
  }

 private:
  fs::path folder() const {
    if (options_.path.empty())
      throw ConfigError("data.path is not set: name the folder with dataset.json");
    const fs::path root(options_.path);
    return root.filename() == "dataset.json" ? root.parent_path()
                                             : fs::path(described_in(options_.path));
  }

  /// A data set: a folder and its dataset.json.
  struct DataSet {
    fs::path root;
    std::string place;
    Json json = read_json(place);
    bool is_first_version = json.is_object() && json.contains("modality");
    std::size_t channels =
        member(json, is_first_version ? "modality" : "channel_names", place).size();

    /// Checks that the data set is of a kind that is read. Throws: DataError that names what is
    /// not.
    void check() const {
      const std::string sample = "image" + ending();
      if (!io::is_image_path(sample)) {
        throw DataError(
            "{}: file_ending '{}' is not read; {}",
            place,
            ending(),
            io::conversion_of(sample).empty() ? io::kinds_read() : io::conversion_of(sample));
      }
      const DatasetDescription description = read_description(place);
      if (!description.regions.empty()) {
        throw DataError(
            "{}: labels.{} are regions of several values, which are not learned; give each value "
            "one name, as {{\"background\": 0, \"edema\": 1, \"core\": 2}}",
            place,
            join(description.regions, ", labels."));
      }
      const auto reader = json.find("overwrite_image_reader_writer");
      if (reader == json.end() || reader->is_null()) return;
      const std::string name = text_of(*reader, place);
      const std::vector<std::string> known{"SimpleITKIO",
                                           "SimpleITKIOWithReorient",
                                           "NibabelIO",
                                           "NibabelIOWithReorient",
                                           "NaturalImage2DIO",
                                           "Tiff3DIO"};
      if (!contains(known, name)) {
        throw DataError("{}: overwrite_image_reader_writer: there is no '{}', expected {}.{}",
                        place,
                        printable(name),
                        join(known, ", "),
                        suggestion(name, known));
      }
      if (name.ends_with("WithReorient")) {
        warn_once(
            fmt::format("{}: overwrite_image_reader_writer {}: images are learned as their "
                        "files have them; Orientationd turns them",
                        place,
                        name));
      }
      if (name == "Tiff3DIO") {
        warn_once(
            fmt::format("{}: overwrite_image_reader_writer Tiff3DIO: the spacing of CASE.json "
                        "is not read, that of the TIFF files is",
                        place));
      }
    }

    Cases training() const {
      check();
      Cases cases = is_first_version           ? listed("training")
                    : json.contains("dataset") ? named()
                                               : found("imagesTr", "labelsTr");
      for (const auto& [name, one] : cases) {
        if (one.label.empty()) {
          throw DataError("{}: case '{}' has no label: {} is missing",
                          place,
                          name,
                          (root / "labelsTr" / name).string() + ending());
        }
      }
      const auto count = json.find("numTraining");
      if (count != json.end() && count->is_number_integer() &&
          count->get<int64_t>() != std::ssize(cases)) {
        throw DataError(
            "{}: numTraining is {}, but there are {} cases", place, count->dump(), cases.size());
      }
      return cases;
    }

    Cases tests() const {
      check();
      if (is_first_version) {
        if (json.contains("test") && !json["test"].empty()) return listed("test");
      } else if (fs::is_directory(root / "imagesTs")) {
        return found("imagesTs", "labelsTs");
      }
      throw ConfigError(root.string() + ": no test images: imagesTs is missing");
    }

    std::string ending() const {
      return is_first_version ? ".nii.gz" : text_of(member(json, "file_ending", place), place);
    }

    /// The cases found as FOLDER/CASE_0000.ext, as in the second version.
    Cases found(const std::string& folder, const std::string& labels) const {
      const std::string end = ending();
      const fs::path images = root / folder;
      if (!fs::is_directory(images)) throw ConfigError(images.string() + ": no such folder");
      std::vector<std::string> names;
      for (const fs::directory_entry& entry : fs::directory_iterator(images)) {
        const std::string name = entry.path().filename().string();
        if (!io::is_hidden(name) && name.ends_with(end)) names.push_back(name);
      }
      std::ranges::sort(names);
      Cases cases;
      for (const std::string& name : names) {
        const std::string start = name.substr(0, name.size() - end.size());
        const std::size_t from = start.size() < 5 ? 0 : start.size() - 5;
        if (from == 0 || start[from] != '_' ||
            start.find_first_not_of("0123456789", from + 1) != std::string::npos) {
          throw DataError(
              "{}: expected CASE_0000{} with the channel's number", (images / name).string(), end);
        }
        if (std::stoul(start.substr(from + 1)) >= channels) {
          throw DataError("{}: channel {}, but {} names {}",
                          (images / name).string(),
                          start.substr(from + 1),
                          place,
                          channels);
        }
        cases[start.substr(0, from)];
      }
      if (cases.empty()) {
        throw DataError("{}: no images that end in {} as {} says", images.string(), end, place);
      }
      for (auto& [name, one] : cases) {
        one.images = files_of((images / name).string(), end);
        const std::string label = path_as_stored((root / labels / name).string() + end);
        if (is_there(label)) one.label = label;
      }
      return cases;
    }

    /// The cases in `dataset` of a dataset.json whose files are elsewhere.
    Cases named() const {
      Cases cases;
      for (const auto& [name, entry] : json["dataset"].items()) {
        const std::string where = fmt::format("{}: dataset.{}", place, name);
        for (const Json& image : list_of(entry, "images", where))
          cases[name].images.push_back(existing(text_of(image, where), where));
        cases[name].label = existing(text_of(member(entry, "label", where), where), where);
        if (cases[name].images.size() == channels) continue;
        throw DataError("{}: {} images, expected {}", where, cases[name].images.size(), channels);
      }
      return cases;
    }

    /// The cases that the first version lists as imagesTr/CASE.nii.gz; the files' names have the
    /// channel's number.
    Cases listed(const char* key) const {
      Cases cases;
      const Json& entries = list_of(json, key, place);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::string where = fmt::format("{}: {}[{}]", place, key, i);
        const bool is_path = entries[i].is_string();
        const std::string image =
            text_of(is_path ? entries[i] : member(entries[i], "image", where), where);
        const std::string file = fs::path(image).filename().string();
        const std::string end = file.substr(std::min(file.find('.'), file.size()));
        const fs::path path = (root / image).lexically_normal();
        Case& one = cases[file.substr(0, file.size() - end.size())];
        const std::string start = path.string().substr(0, path.string().size() - end.size());
        if (is_there(path.string()) && !is_there(start + "_0000" + end)) {
          throw DataError(
              "{}: {}_0000{} is missing; data=decathlon reads the Decathlon's own layout",
              where,
              start,
              end);
        }
        one.images = files_of(start, end);
        if (!is_path)
          one.label = existing(text_of(member(entries[i], "label", where), where), where);
      }
      return cases;
    }

    /// The files START_0000END, START_0001END, ...
    std::vector<std::string> files_of(const std::string& start, const std::string& end) const {
      std::vector<std::string> files;
      for (std::size_t channel = 0; channel < channels; ++channel) {
        files.push_back(path_as_stored(fmt::format("{}_{:04}{}", start, channel, end)));
        if (is_there(files.back())) continue;
        if (channel == 1 && holds_all(files[0])) return {files[0]};
        throw DataError("{}: no such image: {} names {} channels", files.back(), place, channels);
      }
      if (files.empty()) throw DataError(place + ": no channels, expected one at least");
      return files;
    }

    /// Whether all channels are in one file, like the colours of NaturalImage2DIO.
    bool holds_all(const std::string& file) const {
      try {
        return io::open_image(file, {0, 0, 0})->info().shape[0] == static_cast<int64_t>(channels);
      } catch (const Error&) {
        return false;
      }
    }

    std::string existing(const std::string& file, const std::string& where) const {
      std::string path = path_as_stored((root / file).lexically_normal().string());
      if (is_there(path)) return path;
      throw DataError(where + ": no such image: " + path);
    }
  };

  Cases of_fold(const DataSet& set, const Cases& all, bool is_valid) const {
    std::string file = options_.splits_file.value_or("");
    if (file.empty()) file = (set.root / "splits_final.json").string();
    Cases cases;
    if (options_.splits_file || is_there(file)) {
      const Json splits = read_json(file);
      check_fold(splits.size(), file);
      const std::string where = fmt::format("{}: [{}]", file, options_.fold);
      const Json& fold = splits[static_cast<std::size_t>(options_.fold)];
      for (const Json& name : list_of(fold, is_valid ? "val" : "train", where)) {
        const auto found = all.find(text_of(name, where));
        if (found == all.end()) {
          throw DataError("{}: there is no case '{}'.{}",
                          where,
                          text_of(name, where),
                          suggestion(text_of(name, where), keys_of(all)));
        }
        cases.insert(*found);
      }
      if (cases.empty()) throw DataError(where + ": no cases");
      return cases;
    }
    const std::size_t folds = std::min<std::size_t>(all.size(), 5);  // with few cases, one case
                                                                     // each
    check_fold(folds, set.place);
    if (folds < 2) {
      warn_once(fmt::format(
          "{}: one case, so validation has the same: its scores say nothing of other images",
          set.place));
      return all;
    }
    const auto held_out =
        shuffled_folds(all.size(), folds)[static_cast<std::size_t>(options_.fold)];
    std::size_t index = 0;
    for (const auto& entry : all) {
      if (std::ranges::binary_search(held_out, index++) == is_valid) cases.insert(entry);
    }
    return cases;
  }
  void check_fold(std::size_t count, const std::string& place) const {
    if (options_.fold < static_cast<int64_t>(count)) return;
    throw ConfigError("data.fold: {}, but {} has {} folds from 0", options_.fold, place, count);
  }
  Options options_;
};
CYTRA_REGISTER(DataModule, NnUnetDatamodule, "NnUnetDatamodule");

}  // namespace
}  // namespace cytra::data
