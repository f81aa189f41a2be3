#pragma once
// Checks which TIFF pages can be read, and takes the samples of a decoded row; for read.cpp.
#include <string>

#include "io/pixels/stored.h"
#include "io/tiff/file.h"

namespace cytra::io {

/// Checks a page. Throws: DataError for a compression, colour model or type that is not supported.
void check_supported(const std::string& path, const TiffPage& page);
/// The type of a supported page.
Dtype dtype_of(const TiffPage& page);
/// Whether samples are packed without whole bytes: of 1 to 7, 9 to 15 and 17 to 31 bits.
bool is_packed(const TiffPage& page);
/// Whether decoded samples need no conversion.
bool is_native(const TiffPage& page);
/// Whether its strips can be decoded row by row, instead of whole.
bool has_rows(const TiffPage& page);
/// Copies one sample of `count` pixels, from pixel `first` of a decoded row with `samples` per
/// pixel, to contiguous values of dtype_of(page). Throws: DataError as convert().
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
