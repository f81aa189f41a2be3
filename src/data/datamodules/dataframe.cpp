// DataframeDatamodule: manifests with one row per sample. Source:
// cyto_dl.datamodules.dataframe.DataframeDatamodule.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/datamodule.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

class DataframeDatamodule final : public DataModule {
 public:
  struct Options : LoaderOptions {
    std::string path;
    std::vector<std::string> columns;
    template <class V>
    void visit(V& v) {
      v("path",
        path,
        "folder with train.csv, valid.csv, test.csv, predict.csv, or one .csv or .tsv file");
      v("columns", columns, "columns with image paths; empty: all");
      LoaderOptions::visit(v);
      using config::Unused;
      v("persistent_workers", Unused{}, "workers live as long as the training");
      v("split_column", Unused{{"null"}}, "a file per split: train.csv, valid.csv, test.csv");
      v("split_map", Unused{{"null"}}, "a file per split: train.csv, valid.csv, test.csv");
      v("subsample", Unused{{"null"}}, "use trainer.limit_train_batches");
      v("refresh_subsample", Unused{{"false"}}, "there is no subsample");
      v("just_inference", Unused{{"false"}}, "use `predict`");
      v("smartcache_args",
        Unused{{"null"}},
        "images are kept in memory and on disk: ram_cache_gb, cache_dir");
    }
  };
  explicit DataframeDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    if (options_.path.empty())
      throw ConfigError("data.path is not set: name the folder with train.csv and valid.csv");
    std::error_code ignored;  // a name too long
    if (!fs::exists(options_.path, ignored)) {
      throw ConfigError(fmt::format("data.path: {}: no such folder or manifest", options_.path));
    }
    if (!fs::is_directory(options_.path, ignored))
      return read_manifest(options_.path, options_.columns);
    for (const char* extension : {".csv", ".tsv"}) {
      const fs::path file = fs::path(options_.path) / (std::string(name_of(split)) + extension);
      if (fs::exists(file, ignored)) return read_manifest(file.string(), options_.columns);
    }
    throw ConfigError(
        fmt::format("data.path: {}: no {}.csv in this folder", options_.path, name_of(split)));
  }
  const LoaderOptions& loader() const override { return options_; }

 private:
  Options options_;
};
CYTRA_REGISTER(DataModule, DataframeDatamodule, "DataframeDatamodule");

}  // namespace
}  // namespace cytra::data
