#pragma once
#include <string>

#include "io/image.h"

namespace cytra::io {

/// A PNG file in memory: what write_png() writes. Throws: std::logic_error for an image of
/// other samples, IoError.
std::string encode_png(const Image& image);

}  // namespace cytra::io
