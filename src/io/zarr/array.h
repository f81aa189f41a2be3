#pragma once
// Reads boxes of a Zarr array; for zarr*.cpp only.
#include <mutex>
#include <vector>

#include "io/zarr/meta.h"

namespace cytra::io {

/// A box of samples, and the destination of its first one.
struct Box {
  Extent begin{}, size{};
  int64_t offset = 0;  // in samples
};
/// The samples to fill, with the distance between neighbours along each dimension of the array.
struct Destination {
  unsigned char* data = nullptr;
  Extent strides{};  // in samples of ZarrType::dtype
};

/// A Zarr array. Thread: read() and covered() may run on several threads, as the store's open().
class ZarrArray {
 public:
  /// `key`: of the array's group, "" for the root.
  ZarrArray(const ZarrStore& store, std::string key, ZarrMeta meta)
      : store_(store), key_(std::move(key)), meta_(std::move(meta)) {}
  const ZarrMeta& meta() const { return meta_; }
  /// Fills `destination` with the boxes, each within the array; opens only the chunks they touch,
  /// each once. Its memory must be zeroed. Throws: DataError for damaged chunks, values that don't
  /// fit into 32 bits, too many chunks for one call, or no chunks where there are files of other
  /// names.
  void read(const std::vector<Box>& boxes, const Destination& destination) const;
  /// Checks the files. Throws: DataError where there are hardly any files for the stated chunks:
  /// even an image that is mostly empty has one for 65536 of them.
  void check_stored() const;
  /// The number of samples of the boxes in chunks that have a file; a small file counts for at
  /// most 1 GB or 2000 times its size. Throws: as read().
  std::size_t covered(const std::vector<Box>& boxes) const;

 private:
  void check_count(const std::vector<Box>& boxes) const;
  std::string key_of(const Extent& position) const;
  void check_keys() const;  // for a region that has no chunk
  const ZarrStore& store_;
  std::string key_;
  ZarrMeta meta_;
  mutable std::once_flag checked_;
};

/// The most chunks of one read(): about a second's work where none of them exists.
constexpr int64_t kMostChunks = int64_t{1} << 18;

}  // namespace cytra::io
