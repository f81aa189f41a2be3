#pragma once
// Keeps results that are expensive to compute in memory and on disk.
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
  double disk_gb = 50;    // the images used longest ago are removed first
  bool compress = false;  // zstd on disk: smaller, but no longer mapped into memory
  /// Whether, when memory is full, the entry used longest ago is removed. Else the first images
  /// that fit stay, which is better where all are used in turn, epoch after epoch.
  bool replaces = false;
};

/// An entry, such as an image and its label. The tensors must not be written to.
struct CacheEntry {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, io::Geometry> geometries = {};
};

/// Keeps entries by key. In memory float32 tensors that hold whole numbers are kept as uint8,
/// uint16 or int16. On disk an entry is one file that several processes share: written under
/// another name and renamed, with a checksum, so that a killed process leaves nothing that could
/// be taken for an entry; a damaged file counts as missing. A full disk ends the writing with one
/// warning, but not the run. Thread-safe. Follows: MONAI's CacheDataset and PersistentDataset.
class CacheManager {
 public:
  struct Stats {
    int64_t ram_hits = 0, disk_hits = 0, misses = 0;
    std::size_t ram_bytes = 0;
    bool is_full = false;  // an entry did not fit into memory, or took the place of others
  };

  /// Makes cache_dir. Throws: ConfigError when that is not possible.
  explicit CacheManager(CacheLimits limits);
  /// The entry of a key; null when it is neither in memory nor on disk. `use_disk` false: looks
  /// into memory only.
  std::shared_ptr<const CacheEntry> get(const std::string& key, bool use_disk = true);
  /// Keeps an entry and returns the kept one. `to_disk` false: in memory only.
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
  std::unordered_set<std::string> verified_;  // files whose checksum this process has verified
  Stats stats_;
  std::size_t disk_bytes_ = 0, written_since_ = 0;  // at the last check, and written since then
  std::atomic<bool> can_write_{false};
};

/// A stamp of a file's content: path, size and times of the last change, including the one that a
/// copy with its old time can't hide. For a folder it covers everything in it, and for an image in
/// several files all of them.
std::string content_stamp(const std::string& path);

}  // namespace cytra::data
