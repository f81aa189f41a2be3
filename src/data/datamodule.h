#pragma once
// Where samples come from: a DataModule lists the files of each split; the loader does the rest.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader_options.h"

namespace cytra::data {

struct DataLoaderSpec;  // loader.h

enum class Split { train, valid, test, predict };
const char* name_of(Split split);

struct DataModule {
  static constexpr const char* kKind = "data module";
  virtual ~DataModule() = default;
  /// Samples of a split with paths and id only, every file checked to exist. Throws: DataError,
  /// ConfigError.
  virtual std::vector<Sample> items(Split split) const = 0;
  virtual const LoaderOptions& loader() const = 0;
};

/// items() whose files have the axes that the options say.
std::vector<Sample> items_of(const DataModule& module, Split split);
/// The transforms listed for a split (null: none). Throws: ConfigError.
Transforms make_transforms(const SplitTransforms& transforms, Split split);
/// ConfigError for a split of files whose list of transforms is empty.
[[noreturn]] void throw_no_transforms(const SplitTransforms& transforms, Split split);
/// Those of training batches.
BatchTransforms make_batch_transforms(const SplitTransforms& transforms);
/// What a DataLoader needs to load a split: shuffled for training, else whole images of any size,
/// one by one. Throws: as items() and make_transforms().
DataLoaderSpec loader_spec(const DataModule& module, Split split);

/// data=dataframe's DIR/train.csv and the like, whatever people call the split; "" where there is
/// none. Throws: ConfigError for several.
std::string table_of(const std::string& folder, Split split);
/// All rows of a manifest, see manifest.h.
std::vector<Sample> read_manifest(const std::string& path,
                                  const std::vector<std::string>& columns,
                                  const std::string& axes = "");
/// Images in a folder, sorted, under one key.
std::vector<Sample> list_folder(const std::string& folder, const std::string& key);
/// True for a path there is something at; false, too, for one the system refuses.
bool is_there(const std::string& path);

}  // namespace cytra::data
