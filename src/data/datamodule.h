#pragma once
// Data sets: a DataModule lists the files of each split, and the loader loads them.
#include <optional>
#include <string>
#include <vector>

#include "data/loader/loader_options.h"

namespace cytra::data {

struct DataLoaderSpec;  // loader.h

enum class Split { train, valid, test, predict };
const char* name_of(Split split);
/// The split of train, valid or test that a word of a table means, also CytoDL's "val" and others.
std::optional<Split> split_named(const std::string& word);

struct DataModule {
  static constexpr const char* kKind = "data module";
  virtual ~DataModule() = default;
  /// The samples of a split with paths and id only; every file is checked to exist. Throws:
  /// DataError, ConfigError.
  virtual std::vector<Sample> items(Split split) const = 0;
  virtual const LoaderOptions& loader() const = 0;
};

/// The items(), whose files have the axes that the options say. Where the first image is a time
/// lapse and neither its sample nor LoadImaged chooses, each time point of each file is a sample,
/// as `predict` takes them.
std::vector<Sample> items_of(const DataModule& module, Split split);
/// Makes the transforms listed for a split (null: none). Throws: ConfigError.
Transforms make_transforms(const SplitTransforms& transforms, Split split);
/// Throws: ConfigError for a split of files whose list of transforms is empty.
[[noreturn]] void throw_no_transforms(const SplitTransforms& transforms, Split split);
/// The description by which a DataLoader loads a split: shuffled for training, else whole images
/// of any size, one by one. Throws: what items() and make_transforms() throw.
DataLoaderSpec loader_spec(const DataModule& module, Split split);

/// The table of a split for data=dataframe, DIR/train.csv or another usual name of the split; ""
/// where there is none. Throws: ConfigError for several.
std::string table_of(const std::string& folder, Split split);
/// Lists the images in a folder, sorted, under one key.
std::vector<Sample> list_folder(const std::string& folder, const std::string& key);
/// Whether there is something at a path; false for a path that the system refuses.
bool is_there(const std::string& path);

}  // namespace cytra::data
