#pragma once
// Decodes nearly all PNG files, two to three times as fast as libpng, which decodes the others
// (png.cpp).
#include <string_view>

#include "io/image.h"

namespace cytra::io {

/// Decodes a file of 8 or 16 bit, grey or RGB, not interlaced, into an `image` that is allocated
/// for it. Returns false, with undefined pixels, where the file is damaged, or has a rare feature;
/// libpng then reports it.
bool decode_plain_png(std::string_view file, Image& image);

}  // namespace cytra::io
