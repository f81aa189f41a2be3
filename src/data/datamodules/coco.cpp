// CocoDatamodule: one COCO JSON with the annotations of many images. Source:
// cocodataset.org/#format-data; torchvision.datasets.CocoDetection (root, annFile).
#include <filesystem>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/held_out.h"
#include "io/annotations/annotations.h"
#include "io/formats.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

class CocoDatamodule final : public DataModule, public Parted {
 public:
  struct Options : LoaderOptions, HoldOutOptions {
    std::string path;
    std::optional<std::string> valid_path, test_path, image_dir;
    std::vector<std::string> columns{"raw", "seg"};
    void visit(auto& v) {
      v("path", path, "COCO's JSON with images, annotations and categories");
      v("valid_path", valid_path, "JSON of the validation set; null: the last images of path");
      v("test_path", test_path, "JSON of the test set; null: the validation set");
      v("image_dir",
        image_dir,
        "folder of the images; null: the JSON's own, or images/, or the JSON's name beside it");
      v("columns", columns, "names of image and annotations in a sample");
      HoldOutOptions::visit(v);
      LoaderOptions::visit(v);
    }
    void check() const {
      LoaderOptions::check();
      FoldOptions::check();
      if (columns.size() != 2) {
        throw ConfigError("columns: {}, expected 2: the image and its annotations", columns.size());
      }
    }
  };
  explicit CocoDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    const bool is_trained = split == Split::train || split == Split::valid;
    if (options_.folds && is_trained) {
      std::vector<Sample> all = list(options_.path);
      if (options_.valid_path) append(all, list(*options_.valid_path));
      return of_fold(options_, split, std::move(all));
    }
    if (split == Split::test && options_.test_path) return list(*options_.test_path);
    if (options_.valid_path && (split == Split::valid || split == Split::test))
      return list(*options_.valid_path);
    std::vector<Sample> all = list(options_.path);
    if (options_.valid_path || split == Split::predict) return all;
    return hold_out(std::move(all), options_.valid_fraction, split, options_.path);
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (options_.valid_path && !options_.folds) expect_parted(train, valid);
  }

 private:
  /// The folders that images of the JSON may be in, the likeliest first.
  std::vector<fs::path> folders_of(const fs::path& json) const {
    if (options_.image_dir) return {*options_.image_dir};
    const fs::path own = json.parent_path();
    std::string name = json.stem().string();  // instances_train2017
    if (name.starts_with("instances_")) name.erase(0, 10);
    return {own,
            own / "images",
            own / name,
            own / ".." / "images",
            own / ".." / name,
            own / "images" / name,
            own / ".." / "images" / name,
            ""};  // `predict` writes paths of the images that it was given
  }

  using FolderImages = std::map<std::string, std::multimap<std::string, std::string>>;

  /// The path of an image by its name, else the one of the same name with another ending; "" for
  /// none. `listed`: the images of folders by their stems, which are found once.
  static std::string find_image(const std::vector<fs::path>& folders,
                                const std::string& name,
                                FolderImages& listed) {
    for (const fs::path& folder : folders) {
      std::string image = path_as_stored((folder / name).lexically_normal().string());
      if (is_there(image)) return image;
    }
    for (const fs::path& folder : folders) {
      const std::string place = (folder / name).lexically_normal().parent_path().string();
      const auto [entry, is_new] = listed.try_emplace(place);
      std::error_code error;
      for (fs::directory_iterator file(place.empty() ? "." : place, error), end;
           is_new && !error && file != end;
           file.increment(error)) {
        const std::string path = file->path().lexically_normal().string();
        if (io::is_image_path(path) && !io::is_hidden(io::stem_of(path)))
          entry->second.emplace(io::stem_of(path), path);
      }
      const auto [begin, end] = entry->second.equal_range(io::stem_of(name));
      if (begin == end) continue;
      if (std::next(begin) == end) return begin->second;
      throw DataError("{}: there is no {}, and {} may be it as well, expected one",
                      begin->second,
                      printable(name, 200),
                      std::next(begin)->second);
    }
    return "";
  }

  std::vector<Sample> list(const std::string& path) const {
    if (path.empty()) throw ConfigError("data.path is not set: name COCO's JSON");
    const std::vector<std::string> names = io::annotated_images(path);
    if (names.empty()) {
      throw DataError(path +
                      ": no images in it, expected a JSON of COCO with images, annotations "
                      "and categories");
    }
    const std::vector<fs::path> folders = folders_of(path);
    std::vector<Sample> samples;
    FolderImages listed;
    for (const std::string& name : names) {
      const std::string image = find_image(folders, name, listed);
      if (image.empty()) {
        throw DataError(
            "{}: no such image: {}, expected it in {}; data.image_dir names another folder",
            path,
            printable(name, 200),
            options_.image_dir.value_or("the JSON's folder or images/"));
      }
      Sample& sample = samples.emplace_back();
      sample.id = image;
      sample.sources[options_.columns[0]].path = image;
      sample.sources[options_.columns[1]].path = path;
    }
    return samples;
  }
  Options options_;
};
CYTRA_REGISTER(DataModule, CocoDatamodule, "CocoDatamodule");

}  // namespace
}  // namespace cytra::data
