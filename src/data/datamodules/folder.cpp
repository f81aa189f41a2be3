// FolderDatamodule: DIR/train/<column>/NAME.tif with one folder per column and equal names, or
// DIR/<column>/NAME.tif with the last `valid_fraction` of the names held out.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/datamodule.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

class FolderDatamodule final : public DataModule {
 public:
  struct Options : LoaderOptions {
    std::string path;
    std::vector<std::string> columns;
    double valid_fraction = 0.2;
    template <class V>
    void visit(V& v) {
      v("path",
        path,
        "folder with one folder of images per column, or with train/, valid/, test/ that have "
        "these");
      v("columns",
        columns,
        "names of the folders; images of one sample have one name (without extension)");
      v("valid_fraction",
        valid_fraction,
        "share held out for validation when there is no train/",
        0,
        1);
      LoaderOptions::visit(v);
    }
  };
  explicit FolderDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    if (options_.columns.empty())
      throw ConfigError("data.columns is not set: name the folders to read, e.g. [raw, seg]");
    const fs::path root(options_.path);
    std::error_code ignored;  // a name too long
    if (!fs::is_directory(root, ignored))
      throw ConfigError(fmt::format("data.path: {}: no such folder", options_.path));
    if (fs::is_directory(root / "train", ignored)) return pair_up(root / name_of(split));
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
  std::vector<Sample> pair_up(const fs::path& folder) const {
    std::vector<Sample> samples =
        list_folder((folder / options_.columns.front()).string(), options_.columns.front());
    for (std::size_t i = 1; i < options_.columns.size(); ++i) {
      const std::string& column = options_.columns[i];
      std::map<std::string, std::string> by_stem;
      for (Sample& other : list_folder((folder / column).string(), column))
        by_stem[stem(other.id)] = other.id;
      for (Sample& sample : samples) {
        const auto partner = by_stem.find(stem(sample.id));
        if (partner == by_stem.end()) {
          throw DataError(fmt::format(
              "{}: no image of the same name in {}", sample.id, (folder / column).string()));
        }
        sample.sources[column].path = partner->second;
      }
    }
    return samples;
  }
  static std::string stem(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    return name.substr(0, name.find('.'));
  }
  Options options_;
};
CYTRA_REGISTER(DataModule, FolderDatamodule, "FolderDatamodule");

}  // namespace
}  // namespace cytra::data
