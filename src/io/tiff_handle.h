#pragma once
// An open TIFF whose messages go to a text instead of stderr; for tiff_read.cpp and tiff_write.cpp
// alone.
#include <memory>
#include <string>

#include <tiffio.h>

namespace cytra::io {

struct TiffMessages {
  std::string error;      // libtiff's first since clear()
  int error_number = 0;   // errno at that time
  bool lost_tag = false;  // a tag whose value lies beyond the end of the file
  void clear() { *this = {}; }
};

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, TiffCloser>;

/// Takes over the descriptor when it succeeds. `messages` must outlive the handle.
TiffHandle open_tiff(int descriptor, const char* mode, TiffMessages& messages);

}  // namespace cytra::io
