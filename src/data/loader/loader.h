#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "data/loader/batch.h"
#include "data/loader/loader_options.h"
#include "data/loader/pipeline.h"
#include "data/loader/sampler.h"

namespace cytra::data {

struct DataLoaderSpec {
  std::vector<Sample> items;
  Transforms transforms;
  BatchTransforms batch_transforms;  // DeviceFeed applies them
  LoaderOptions options;
  uint64_t seed = 0;
  bool shuffle = false;
  bool channels_last = false, pin = false;  // of batches: see BatchLayout
  int64_t batches = 0;  // of an epoch, images repeated or left for the next; 0: each image once
  std::function<int64_t(int64_t)> limit;  // the number of batches of an epoch, given that of all;
                                          // none: all
  int64_t rank = 0, world_size = 1;       // this process's share of every epoch
  bool pad = true;                        // as SamplerSpec's
  std::shared_ptr<CacheManager> cache;    // null: nothing is kept
};

struct LoaderStats {
  int64_t samples = 0, failed = 0;            // images loaded; images that could not be
  std::map<std::string, std::string> broken;  // their ids and why
};

/// Batches of an epoch, loaded ahead by worker threads that live as long as the loader. Each image
/// is one job, so a slow one delays only its own batch; the order of batches is kept. The content
/// of a batch depends only on (seed, epoch, position), not on the number of workers. A batch has
/// batch_size images with num_samples draws of each.
/// Source: torch.utils.data.DataLoader's options; threads instead of processes.
class DataLoader {
 public:
  explicit DataLoader(DataLoaderSpec spec);
  /// Waits up to 2 s for the images in work; a read that hangs is abandoned with a warning.
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  /// The number of batches in an epoch.
  int64_t size() const;
  /// The rows of an epoch's last batch, where no image is left out.
  int64_t rows_of_last() const;
  const std::vector<Sample>& items() const;
  /// Begins an epoch at its batch `first` (a resume). `more`: the next epoch follows, and is loaded
  /// when this one ends. Batches loaded ahead are used when they are of this epoch, else dropped.
  void start_epoch(int64_t epoch, int64_t first = 0, bool more = false);
  /// The next batch, or nothing at the end. Throws what a transform threw, e.g. DataError naming
  /// the file and the transform; DataError after `timeout`; Interrupted when it has to wait long
  /// after a signal (base/signals.h).
  std::optional<Batch> next();
  /// Whether next() would not wait.
  bool is_ready() const;
  LoaderStats stats() const;
  const BatchTransforms& batch_transforms() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace cytra::data
