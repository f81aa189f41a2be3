#pragma once
// An open TIFF whose messages go to a text instead of stderr; for tiff_*.cpp only.
#include <memory>
#include <string>

#include <tiffio.h>

#include "io/input_file.h"

namespace cytra::io {

struct TiffMessages {
  std::string error;      // libtiff's first since clear()
  bool lost_tag = false;  // a tag's value is beyond the end of the file
  void clear() { *this = {}; }
};

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, TiffCloser>;

/// Reads `file` from any place, beside other handles of it; null when it is no TIFF.
/// `messages`, `file` and `position` (0 at first) must outlive the handle.
struct TiffSource {
  const InputFile* file = nullptr;
  uint64_t position = 0;
  uint64_t left = UINT64_MAX;             // bytes that may still be read
  const unsigned char* mapped = nullptr;  // the file in memory: no strip is read into a buffer
};
TiffHandle open_tiff(TiffSource& source, TiffMessages& messages);

/// A TIFF that is written to memory, to use libtiff's codecs; arguments must outlive it as above.
struct TiffMemory {
  std::string bytes;
  std::size_t position = 0;
};
TiffHandle open_tiff(TiffMemory& memory, TiffMessages& messages);

}  // namespace cytra::io
