#pragma once
// What image.cpp shares with the formats; not for others.
#include <string>

#include "io/image.h"

namespace cytra::io {

Image read_tiff(const std::string& path);
Image read_png(const std::string& path);

/// Sets shape and allocates zeroed pixels for a header that claims these sizes, each >= 0.
/// Throws: DataError when one is 0, or the whole is absurd in itself or against the file's size.
void allocate(const std::string& path,
              std::array<int64_t, 4> shape,
              std::size_t file_bytes,
              Image& image);

/// Copies `count` groups of `samples` values of `size` bytes to one plane per sample: planes[s][i].
/// Further samples (alpha) stay behind.
void deinterleave(const unsigned char* from,
                  int64_t count,
                  int64_t samples,
                  std::size_t size,
                  unsigned char* const* planes,
                  int64_t plane_count);

/// Throws std::logic_error unless sizes, pixels and channel names agree.
void check_writable(const Image& image);

}  // namespace cytra::io
