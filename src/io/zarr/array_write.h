#pragma once
// A Zarr folder that appears whole or not at all, and boxes of a new array in it; for zarr*.cpp
// only.
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "io/zarr/array.h"

namespace cytra::io {

/// A folder that is written beside `path`, in that of an AtomicFile's temporary; commit() flushes
/// it to the disk and puts it in place of an existing Zarr folder. Without a commit the destructor
/// removes it.
class ZarrFolder {
 public:
  /// Begins the folder. Throws: ConfigError (there is something else at `path`; parent missing or
  /// not writable).
  explicit ZarrFolder(std::string path);
  ~ZarrFolder();
  ZarrFolder& operator=(ZarrFolder&&) = delete;
  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// Writes a new file, making the folders above it. Throws: what AtomicFile throws.
  void write(const std::string& key, const void* data, std::size_t bytes) const;
  void write(const std::string& key, const std::string& text) const {
    write(key, text.data(), text.size());
  }
  void commit();

 private:
  std::string path_;
  AtomicFile mark_;  // never committed: as long as it is locked, nobody takes the folder for stale
  std::string temporary_;
};

/// Writes an array. Thread: write() may be called by several threads.
class ZarrArrayWriter {
 public:
  /// Writes chunks below `key`/ of the folder; metadata is written elsewhere.
  ZarrArrayWriter(const ZarrFolder& folder, std::string key, ZarrMeta meta);
  /// Writes the samples of a box within the array. Throws: IoError; std::logic_error for samples
  /// that are written twice.
  void write(const Box& box, const unsigned char* samples, const Extent& strides);
  /// Writes incomplete chunks.
  void finish();

 private:
  struct UnfinishedChunk {  // a chunk that lacks samples
    Buffer samples;
    std::vector<Box> written;
    int64_t missing = 0;
    Extent position{};
  };
  struct Shard {
    std::unordered_map<std::size_t, Buffer> chunks;  // compressed
    int64_t missing = 0;
    Extent position{};
  };
  bool add(const Extent& position,
           const Box& part,
           const unsigned char* samples,
           const Extent& strides,
           UnfinishedChunk& complete);
  void store(UnfinishedChunk part);
  void store_shard(const Shard& shard);

  const ZarrFolder& folder_;
  std::string key_;
  ZarrMeta meta_;
  Extent unit_{}, counts_{};  // what is compressed at once, and how many there are
  std::mutex mutex_;          // guards the members below
  std::vector<bool> is_complete_;
  std::unordered_map<std::size_t, UnfinishedChunk> parts_;
  std::unordered_map<std::size_t, Shard> shards_;
};

}  // namespace cytra::io
