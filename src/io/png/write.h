#pragma once
#include <memory>
#include <string>

#include "io/writer.h"

namespace cytra::io {

/// A PNG file in memory: what write_png() writes. Throws: std::logic_error for an image of
/// other samples, IoError.
std::string encode_png(const Image& image);

/// 8- or 16-bit integers, in a plane of one value or three.
bool fits_png(const ImageInfo& info);
/// As Format::create.
std::unique_ptr<ImageWriter> create_png(const std::string& path,
                                        const ImageInfo& info,
                                        const OutputOptions& options);

}  // namespace cytra::io
