#pragma once
// Where samples come from: a DataModule lists the files of each split; the loader does the rest.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {

enum class Split { train, valid, test, predict };
const char* name_of(Split split);

/// The lists of transforms, by split.
struct SplitTransforms {
  config::Node train, valid, test, predict;
  template <class V>
  void visit(V& v) {
    const config::Part transforms = config::list_of<Transform>();
    v("train", train, "transforms of training images, in order", transforms);
    v("valid", valid, "of validation images; null: none", transforms);
    v("test", test, "of test images; null: none", transforms);
    v("predict", predict, "of images to predict; null: as valid", transforms);
  }
};

/// Keys every data module takes, with CytoDL's and torch's names.
struct LoaderOptions {
  int64_t batch_size = 1, num_workers = 2, prefetch_factor = 2;
  bool pin_memory = true, drop_last = false;
  double ram_cache_gb = 2;
  SplitTransforms transforms;
  template <class V>
  void visit(V& v) {
    v("batch_size", batch_size, "images per batch, each giving num_samples crops", 1, 1e6);
    v("num_workers",
      num_workers,
      "threads that load and transform; 0: in the training thread",
      0,
      1024);
    v("prefetch_factor", prefetch_factor, "batches kept ready per worker", 1, 1024);
    v("pin_memory", pin_memory, "page-locked batches when a CUDA device is used");
    v("drop_last", drop_last, "leave out the last batch of an epoch when it is short");
    v("ram_cache_gb", ram_cache_gb, "GB of decoded images kept in memory between epochs", 0, 1e6);
    v("transforms", transforms, "what is done to images, by split");
  }
};

struct DataModule {
  static constexpr const char* kKind = "data module";
  virtual ~DataModule() = default;
  /// Samples of a split with paths and id only, every file checked to exist. Throws: DataError,
  /// ConfigError.
  virtual std::vector<Sample> items(Split split) const = 0;
  virtual const LoaderOptions& loader() const = 0;
};

/// The transforms listed for a split (null: none). Throws: ConfigError.
Transforms make_transforms(const SplitTransforms& transforms, Split split);

/// Images of a manifest (.csv, .tsv): each column with paths relative to the manifest's folder.
/// Without `columns` every column is taken. Throws: DataError with file:line for a row whose image
/// is missing.
std::vector<Sample> read_manifest(const std::string& path, const std::vector<std::string>& columns);
/// Images in a folder, sorted, under one key.
std::vector<Sample> list_folder(const std::string& folder, const std::string& key);

}  // namespace cytra::data
