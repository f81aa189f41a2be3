#pragma once
// What is expensive to make, kept in memory and on disk.
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data {

struct CacheLimits {
  double ram_gb = 2;      // of 1e9 bytes
  std::string cache_dir;  // empty: no disk cache
  double disk_gb = 50;    // the images used longest ago go first
  bool compress = false;  // zstd on disk: smaller, but no longer mapped into memory
  /// Of memory that is full: what was used longest ago goes. Else the first images that fit stay,
  /// which is better where all of them are used in turn, an epoch after the other.
  bool replaces = false;
};

/// An image and its label, say. Nobody writes into them.
struct CacheEntry {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, io::Geometry> geometries = {};
};

/// Keeps entries by key. In memory float32 tensors that hold whole numbers are kept as uint8,
/// uint16 or int16. On disk an entry is one file that several processes share: written aside and
/// renamed, with a checksum, so that a killed process leaves nothing that another would take for an
/// entry; a damaged file counts as missing. A disk that fills up ends the writing with one warning,
/// never the run. Thread-safe. Follows: MONAI's CacheDataset and PersistentDataset.
class CacheManager {
 public:
  struct Stats {
    int64_t ram_hits = 0, disk_hits = 0, misses = 0;
    std::size_t ram_bytes = 0;
    bool is_full = false;  // an entry did not fit into memory, or took the place of others
  };

  /// Makes cache_dir. Throws: ConfigError when that can't be.
  explicit CacheManager(CacheLimits limits);
  /// Null when it is in neither. `use_disk` false: looks into memory alone.
  std::shared_ptr<const CacheEntry> get(const std::string& key, bool use_disk = true);
  /// Keeps it and returns what is kept. `to_disk` false: in memory alone.
  std::shared_ptr<const CacheEntry> put(const std::string& key,
                                        CacheEntry entry,
                                        bool to_disk = true);
  Stats stats() const;

 private:
  std::shared_ptr<const CacheEntry> keep(const std::string& key, CacheEntry entry);
  std::string file_of(const std::string& key) const;
  std::optional<CacheEntry> read(const std::string& key);
  void write(const std::string& key, const CacheEntry& entry);
  void shrink();

  CacheLimits limits_;
  struct Kept {
    std::shared_ptr<const CacheEntry> entry;
    std::list<std::string>::iterator use;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Kept> kept_;
  std::list<std::string> uses_;               // keys; the one used longest ago comes first
  std::unordered_set<std::string> verified_;  // files whose checksum this process has seen to fit
  Stats stats_;
  std::size_t disk_bytes_ = 0, written_since_ = 0;  // as of the last look, and written since
  std::atomic<bool> can_write_{false};
};

/// Path, size and times of the last change, which a copy that keeps its time can't hide; of
/// everything in it for a folder, and of an image in several files of all of them.
std::string content_stamp(const std::string& path);

}  // namespace cytra::data
