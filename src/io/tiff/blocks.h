#pragma once
// Decodes the strips and tiles of a TIFF page; for read.cpp.
#include <vector>

#include "io/tiff/file.h"

namespace cytra::io {

/// The target of one sample of each pixel.
struct TiffTarget {
  int64_t sample;
  unsigned char* plane;  // of the region, zeroed, as dtype_of(page)
};
struct TiffBox {
  int64_t y, x, height, width;
};

/// Whether its strips are so large that they are decoded row by row.
bool is_read_by_row(const TiffPage& page, uint16_t samples);

/// Reads a box of a page whose strips or tiles hold `samples` interleaved values per pixel, those
/// of `sample` when a plane has blocks of its own. Blocks that a sparse file leaves out stay 0.
/// Throws: DataError.
void read_blocks(const TiffFile& file,
                 const TiffPage& page,
                 uint16_t sample,
                 uint16_t samples,
                 const TiffBox& box,
                 const std::vector<TiffTarget>& targets,
                 TiffFile::Handle& handle);

/// The place of pixel (y, x) of the image.
unsigned char* place(
    const TiffPage& page, const TiffTarget& target, const TiffBox& box, int64_t y, int64_t x);

}  // namespace cytra::io
