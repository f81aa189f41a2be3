#pragma once
// The description of channels and labels in a data set's own file: nnU-Net's and the Decathlon's
// dataset.json.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

struct DatasetDescription {
  std::string place;                      // the file, for messages; "": there is none
  std::vector<std::string> channels;      // their names, such as "CT"; empty: not given
  std::map<int64_t, std::string> labels;  // names by number, without the ignored one
  std::optional<int64_t> ignored;         // nnU-Net's label "ignore"
  std::vector<std::string> regions;       // names of nnU-Net's labels that are several numbers
};

/// A data module that has a description.
struct Described {
  virtual ~Described() = default;
  /// The data set's description. Throws: DataError for what is no description.
  virtual DatasetDescription description() const = 0;
};

/// The module's description; an empty one where it has none.
DatasetDescription description_of(const DataModule& module);
/// Reads a dataset.json: `channel_names` or `modality`; `labels` as {"name": number} or
/// {"number": name}.
DatasetDescription read_description(const std::string& file);

}  // namespace cytra::data
