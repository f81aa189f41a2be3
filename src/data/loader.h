#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "data/loader_options.h"

namespace cytra::data {

struct DataLoaderSpec {
  std::vector<Sample> items;
  Transforms transforms;
  LoaderOptions options;
  uint64_t seed = 0;
  bool shuffle = false;
  bool pin = false;  // page-locked batches; a CUDA device must be in use
};

/// Batches of an epoch, loaded ahead by worker threads. What a batch holds is a function of (seed,
/// epoch, position) alone, whatever the number of workers. A batch has batch_size images with
/// num_samples draws of each. Source: torch.utils.data.DataLoader's options; threads instead of
/// processes.
class DataLoader {
 public:
  explicit DataLoader(DataLoaderSpec spec);
  ~DataLoader();
  /// Batches in an epoch.
  int64_t size() const;
  /// Begins an epoch at its batch `first` (a resume). Batches of an epoch under way are dropped.
  void start_epoch(int64_t epoch, int64_t first = 0);
  /// The next batch, or nothing at the end. Throws what a transform threw, e.g. DataError naming
  /// the file.
  std::optional<Batch> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Stacks samples; shapes must agree. Throws: DataError naming the sample that differs.
Batch collate(std::vector<Sample> samples, bool pin);

}  // namespace cytra::data
