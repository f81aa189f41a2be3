#pragma once
// Grey images that were saved in colours: red, green and blue are equal, and an alpha is constant.
#include <memory>
#include <string>

#include "io/reader.h"

namespace cytra::io {

/// Reduces such an image to its one channel, and says so once in a process; false where it has
/// colours, or another number of channels, and then it is not changed.
bool make_grey(Image& image, const std::string& path);
/// The reader of such an image's one channel; of other numbers of channels the reader itself. Every
/// region is checked: read() throws DataError at the first one that has colours.
std::shared_ptr<const ImageReader> grey_of(std::shared_ptr<const ImageReader> reader,
                                           const std::string& path);

}  // namespace cytra::io
