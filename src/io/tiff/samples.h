#pragma once
// Which TIFF pages we can read, and the samples of a decoded row; for read.cpp.
#include <string>

#include "io/pixels/stored.h"
#include "io/tiff/file.h"

namespace cytra::io {

/// Throws: DataError for a compression, colour model or type that is not supported.
void check_supported(const std::string& path, const TiffPage& page);
/// For a page that is supported.
Dtype dtype_of(const TiffPage& page);
/// Whether samples lie side by side without bytes of their own: of 1 to 7, 9 to 15 and 17 to 31
/// bits.
bool is_packed(const TiffPage& page);
/// Whether decoded samples are as we want them.
bool is_native(const TiffPage& page);
/// Whether its strips can be decoded row by row, instead of whole.
bool has_rows(const TiffPage& page);
/// Puts a sample of `count` pixels, from pixel `first` of a decoded row of `samples` per pixel,
/// side by side as dtype_of(page). Throws: DataError as convert().
void take_samples(const std::string& path,
                  const TiffPage& page,
                  const unsigned char* row,
                  int64_t samples,
                  int64_t sample,
                  int64_t first,
                  int64_t count,
                  bool is_swapped,
                  unsigned char* into);

}  // namespace cytra::io
