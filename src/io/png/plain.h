#pragma once
// Nearly all PNG files, decoded two to three times as fast as libpng does. The rest is libpng's: in
// png.cpp.
#include <string_view>

#include "io/image.h"

namespace cytra::io {

/// Decodes a file of 8 or 16 bit, grey or RGB, not interlaced, into an `image` that is allocated
/// for it. False, with any pixels: the file is damaged, or has something rare; libpng tells.
bool decode_plain_png(std::string_view file, Image& image);

}  // namespace cytra::io
