#pragma once
// Joins several files to one image: data.source_keys.
#include <string>
#include <vector>

#include "data/sample/sample.h"

namespace cytra::data {

/// The option of a data module whose images may be in several columns.
struct SourceKeyOptions {
  std::vector<std::string> source_keys;
  std::string joined = {};  // the key of the joined image: the first of `columns`
  void visit(auto& v) {
    v("source_keys",
      source_keys,
      "columns (or folders) whose images become the channels of one image, in this order; it "
      "replaces the first of `columns`; []: that column alone");
  }
  /// Returns `columns` with source_keys in place of the first. Throws: ConfigError where there is
  /// none, or a key is named twice.
  std::vector<std::string> read(const std::vector<std::string>& columns);
};

/// Makes the images under `keys` the channels of one image under `image`. A key that `others` has,
/// too, is kept. Throws: DataError for a key that is no image, ConfigError for parts that are
/// chosen within files.
void join_sources(const std::vector<std::string>& keys,
                  const std::string& image,
                  const std::vector<std::string>& others,
                  std::vector<Sample>& samples);

}  // namespace cytra::data
