#pragma once
// A zip archive of small files; for the formats alone.
#include <string>

#include "base/files.h"

namespace cytra::io {

/// Appears by finish(). Source: PKWARE's APPNOTE.TXT 6.3.
class ZipWriter {
 public:
  /// Throws: as AtomicFile.
  explicit ZipWriter(const std::string& path) : file_(path) {}
  /// A file of its name, ASCII, compressed. Throws: IoError; std::logic_error beyond 4 GB.
  void add(const std::string& name, const std::string& bytes);
  void finish();

 private:
  AtomicFile file_;
  std::string directory_;
  uint64_t position_ = 0, entries_ = 0;
};

}  // namespace cytra::io
