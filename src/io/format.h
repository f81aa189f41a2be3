#pragma once
// What image.cpp shares with the formats; not for others.
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

Image read_tiff(const std::string& path);
Image read_png(const std::string& path);

/// False for a size that is absurd in itself, or against the file that is to hold it.
bool is_plausible(std::size_t bytes, std::size_t file_bytes);

/// Sets shape and allocates zeroed pixels for a header that claims these sizes, each >= 0.
/// Throws: DataError when one is 0 or the whole is not plausible.
void allocate(const std::string& path,
              std::array<int64_t, 4> shape,
              std::size_t file_bytes,
              Image& image);

/// Takes `count` groups of interleaved values of `size` bytes apart: one value of each goes to each
/// plane.
void deinterleave(const unsigned char* from,
                  int64_t count,
                  std::size_t size,
                  const std::vector<unsigned char*>& planes);

/// Throws std::logic_error unless sizes, pixels and channel names agree.
void check_writable(const Image& image);

}  // namespace cytra::io
