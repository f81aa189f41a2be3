#pragma once
#include <memory>
#include <string>

#include "io/writer.h"

namespace cytra::io {

/// Makes a PNG file in memory, as write_png() writes it. Throws: std::logic_error for an image of
/// other samples, IoError.
std::string encode_png(const Image& image);

/// Whether PNG can hold the image: 8- or 16-bit integers, in a plane of one value or three.
bool fits_png(const ImageInfo& info);
/// Format::create of PNG.
std::unique_ptr<ImageWriter> create_png(const std::string& path,
                                        const ImageInfo& info,
                                        const OutputOptions& options);

}  // namespace cytra::io
