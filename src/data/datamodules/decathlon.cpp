// DecathlonDatamodule: the JSON lists of the Medical Segmentation Decathlon and of MONAI. Source:
// monai.data.load_decathlon_datalist; the fourth dimension is channels, as in
// monai.transforms.LoadImaged.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/description.h"
#include "data/datamodules/folds.h"
#include "data/datamodules/json_list.h"
#include "data/layout/layout.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

class DecathlonDatamodule final : public DataModule, public Described, public Parted {
 public:
  struct Options : LoaderOptions {
    std::string path;
    std::vector<std::string> columns{"image", "label"};
    std::optional<std::string> base_dir;
    std::optional<int64_t> fold;
    double valid_fraction = 0.2;
    void visit(auto& v) {
      v("path", path, "the .json file, or the folder with dataset.json");
      v("columns", columns, "our keys of its `image` and `label`");
      v("base_dir", base_dir, "folder that paths start from; null: that of the .json file");
      v("fold", fold, "validation: the items of `training` with this fold", 0, 1e6);
      v("valid_fraction",
        valid_fraction,
        "share of `training`, its end, for validation; without `validation` and fold",
        0,
        1);
      LoaderOptions::visit(v);
    }
    void check() const {
      LoaderOptions::check();
      if (columns.size() != 2) throw ConfigError("columns: expected two: of image and label");
    }
  };
  explicit DecathlonDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    if (options_.path.empty())
      throw ConfigError("data.path is not set: name the .json file that lists the images");
    const std::string file = listing();
    const Json json = read_json(file);
    check(json, file);
    if (split == Split::test || split == Split::predict) {
      if (json.contains("test") && !json["test"].empty()) return read(json, "test", file);
      throw ConfigError(file + ": no images to test: 'test' is missing");
    }
    if (json.contains("validation") && !options_.fold)
      return read(json, split == Split::train ? "training" : "validation", file);
    std::vector<Sample> all = read(json, "training", file), kept;
    if (!options_.fold) return hold_out(std::move(all), options_.valid_fraction, split, file);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto fold = all[i].columns.find("fold");
      if (fold == all[i].columns.end())
        throw DataError("{}: training[{}]: no 'fold', which data.fold asks for", file, i);
      const bool is_valid = fold->second == std::to_string(*options_.fold);
      if (is_valid == (split == Split::valid)) kept.push_back(std::move(all[i]));
    }
    if (kept.empty()) {
      throw ConfigError("{}: no images are left for {}; change data.fold", file, name_of(split));
    }
    return kept;
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (options_.fold || read_json(listing()).contains("validation")) expect_parted(train, valid);
  }
  DatasetDescription description() const override { return read_description(listing()); }

 private:
  std::string listing() const {
    return fs::is_directory(options_.path)
               ? (fs::path(described_in(options_.path)) / "dataset.json").string()
               : options_.path;
  }

  /// Checks what the JSON says about its images. Throws: DataError where that is unknown or wrong.
  void check(const Json& json, const std::string& file) const {
    if (!json.is_object()) return;
    const auto size = json.find("tensorImageSize");
    if (size != json.end() && size->is_string()) {
      const std::string text = size->get<std::string>();
      if (text != "2D" && text != "3D" && text != "4D" && text != "") {
        throw DataError(
            "{}: tensorImageSize is '{}', expected 2D, 3D or 4D", file, printable(text));
      }
    }
    for (const auto& [count, list] :
         {std::pair{"numTraining", "training"}, std::pair{"numTest", "test"}}) {
      const auto number = json.find(count), entries = json.find(list);
      if (number == json.end() || !number->is_number_integer() || entries == json.end() ||
          !entries->is_array() || number->get<int64_t>() == std::ssize(*entries))
        continue;
      throw DataError(
          "{}: {} is {}, but {} lists {}", file, count, number->dump(), list, entries->size());
    }
  }

  /// Checks that an image has as many channels as the JSON names.
  void expect_channels(const Json& json, const Source& source, const std::string& file) const {
    const auto modality = json.find("modality");
    if (modality == json.end() || !modality->is_object() || modality->empty()) return;
    int64_t channels = 0, timepoints = 0;
    try {
      const io::ImageInfo info = io::open_image(source.path, {0, 0, 0})->info();
      timepoints = info.timepoints;
      channels = info.shape[0] * info.timepoints * static_cast<int64_t>(1 + source.more.size());
    } catch (const Error&) {  // reported when the image is read
      return;
    }
    if (channels == std::ssize(*modality)) return;
    throw DataError("{}: modality names {} channels, but {} has {}{}",
                    file,
                    modality->size(),
                    source.path,
                    channels,
                    timepoints > 1 ? " along its 4th dimension" : "");
  }

  std::vector<Sample> read(const Json& json, const char* key, const std::string& file) const {
    const fs::path base =
        options_.base_dir ? fs::path(*options_.base_dir) : fs::path(file).parent_path();
    const Json& entries = list_of(json, key, file);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string place = fmt::format("{}: {}[{}]", file, key, i);
      Sample& sample = samples.emplace_back();
      if (entries[i].is_string()) {  // the Decathlon's own "test"
        add(sample, "image", entries[i], base, place);
      } else if (!entries[i].is_object()) {
        throw DataError(place + ": " + entries[i].type_name() +
                        ", expected {image: ..., label: ...}");
      } else {
        for (const auto& [name, value] : entries[i].items()) add(sample, name, value, base, place);
      }
      const auto image = sample.sources.find(options_.columns[0]);
      if (image == sample.sources.end()) throw DataError(place + ": no 'image'");
      sample.id = image->second.path;
    }
    if (samples.empty()) throw DataError("{}: {} is empty", file, key);
    expect_channels(json, samples[0].sources.at(options_.columns[0]), file);
    return samples;
  }

  /// Adds an entry of an item: image and label are files; another entry is one where such a file
  /// exists.
  void add(Sample& sample,
           const std::string& name,
           const Json& value,
           const fs::path& base,
           const std::string& place) const {
    const std::string where = place + "." + name;
    const bool is_image = name == "image" || name == "label";
    const std::string key = name == "image"   ? options_.columns[0]
                            : name == "label" ? options_.columns[1]
                                              : name;
    const auto path_of = [&](const Json& text) {
      return path_as_stored((base / text_of(text, where)).lexically_normal().string());
    };
    if (!is_image && !(value.is_string() && is_there(path_of(value)))) {
      if (value.is_primitive() && !value.is_null()) sample.columns[key] = text_of(value, where);
      return;
    }
    Source source;
    source.time_is_channel = true;
    for (const Json& one : value.is_array() ? value : Json::array({value})) {
      const std::string path = path_of(one);
      if (!is_there(path)) throw DataError(where + ": no such image: " + path);
      if (source.path.empty()) {
        source.path = path;
      } else {
        source.more.push_back(path);
      }
    }
    if (source.path.empty()) throw DataError(where + ": an empty list, expected paths of images");
    sample.sources[key] = source;
  }
  Options options_;
};
CYTRA_REGISTER(DataModule, DecathlonDatamodule, "DecathlonDatamodule");

}  // namespace
}  // namespace cytra::data
