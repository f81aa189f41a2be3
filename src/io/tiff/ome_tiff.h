#pragma once
// Writes an OME-TIFF part by part; it may be larger than memory.
#include <memory>
#include <string>

#include "io/reader.h"

namespace cytra::io {

/// Writes an OME-TIFF: one page per plane, in the order T, C, Z, with OME-XML; smaller levels in
/// SubIFDs. The file appears when it is finished. Thread: one.
class OmeTiffWriter {
 public:
  /// Uses dtype, shape, timepoints, geometry and channel_names of `info`. Throws: what AtomicFile
  /// throws.
  OmeTiffWriter(const std::string& path, const ImageInfo& info, const WriteOptions& options = {});
  ~OmeTiffWriter();  // without finish() nothing is left
  OmeTiffWriter& operator=(OmeTiffWriter&&) = delete;

  /// The size (Y, X) of a tile, or of a strip: its rows and the image's width.
  std::array<int64_t, 2> block() const;
  /// Writes all channels of a box of whole tiles or strips (up to the edge of the image), in any
  /// order, each once. A tile of a smaller level is written when it is complete; incomplete ones
  /// are kept in memory. Throws: IoError, std::logic_error (not whole blocks, or written before).
  void write(const Region& region, const Image& pixels, int64_t timepoint = 0);
  /// Finishes the file. Throws: IoError, std::logic_error (a block was not written).
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra::io
