#pragma once
// Writes boxes into a new Zarr array; for zarr*.cpp only.
#include <mutex>
#include <unordered_map>
#include <vector>

#include "io/zarr/array.h"
#include "io/zarr/folder.h"

namespace cytra::io {

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
