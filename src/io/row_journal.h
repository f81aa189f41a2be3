#pragma once
// Keeps rows of an image that took long to compute until the whole image is written.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

/// A file of rows along the outer axis (Z of a stack, Y of a plane), in order, each block with a
/// checksum: a killed process leaves whole blocks, and a later one continues after them. Takes
/// about the compressed size on the disk.
class RowJournal {
 public:
  /// Continues the file at `path`, if it was begun with the same `stamp`; else begins anew, with
  /// the row `first`. Throws: what AtomicFile throws.
  RowJournal(std::string path, const std::string& stamp, int64_t first = 0);
  ~RowJournal();
  RowJournal& operator=(RowJournal&&) = delete;

  /// The first row that it does not hold.
  int64_t next() const { return next_; }
  /// Appends rows next() to next() + count, all channels: C,count,... Throws: IoError.
  void append(const Image& rows, int64_t count);
  /// Passes all rows to `take`, block after block. Throws: DataError for a file that was changed.
  void replay(const std::function<void(int64_t first, const Image& rows)>& take) const;

 private:
  struct RowBlock {
    int64_t offset, first, count;
  };
  void begin(const std::string& stamp);
  bool resume(const std::string& stamp);
  std::string path_;
  int descriptor_ = -1;
  int64_t first_, next_, end_ = 0;  // end_: of the file's whole blocks
  std::vector<RowBlock> blocks_;
};

}  // namespace cytra::io
