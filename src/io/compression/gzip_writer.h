#pragma once
// A gzip file whose parts are compressed on several threads; for the formats only.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "io/compression/ordered_jobs.h"

namespace cytra::io {

/// Writes one stream of `lanes`, which follow each other in the file and are written at the same
/// time. Blocks are compressed independently, so the bytes of the file depend only on those of the
/// lanes. The later lanes are kept, compressed, in a temporary beside the file. Thread: one.
class GzipWriter {
 public:
  /// Begins the file. `head`: bytes before the stream, not compressed. Throws: what AtomicFile
  /// throws.
  GzipWriter(const std::string& path, std::size_t lanes, const std::string& head = "");
  void write(std::size_t lane, const void* data, std::size_t bytes);
  void finish();

 private:
  struct Piece {
    uint64_t offset, bytes;
  };
  struct Lane {
    std::string pending;  // not yet a block
    std::vector<Piece> pieces;
    uint32_t checksum = 0;
    uint64_t bytes = 0;
  };
  struct DeflateBlock;
  void post(std::size_t lane);
  void append(std::size_t lane, const DeflateBlock& block);
  void copy(const Piece& piece);

  AtomicFile file_;
  std::unique_ptr<AtomicFile> spool_;  // never committed
  uint64_t spooled_ = 0;
  std::vector<Lane> lanes_;
  OrderedJobs jobs_;
};

}  // namespace cytra::io
