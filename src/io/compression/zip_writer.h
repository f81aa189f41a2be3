#pragma once
// A zip archive of small files; for the formats only.
#include <string>

#include "base/files.h"

namespace cytra::io {

/// Writes a zip archive, which appears by finish(). Source: PKWARE's APPNOTE.TXT 6.3.
class ZipWriter {
 public:
  /// Begins the archive. Throws: what AtomicFile throws.
  explicit ZipWriter(const std::string& path) : file_(path) {}
  /// Adds a file, compressed; its name must be ASCII. Throws: IoError; std::logic_error beyond 4
  /// GB.
  void add(const std::string& name, const std::string& bytes);
  void finish();

 private:
  AtomicFile file_;
  std::string directory_;
  uint64_t position_ = 0, entries_ = 0;
};

}  // namespace cytra::io
