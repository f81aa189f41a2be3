#pragma once
#include "io/pixels/format.h"

namespace cytra::io {

// As in format.h.
bool is_gif(const std::string& head, const std::string& path);
std::unique_ptr<ImageReader> open_gif(const std::string& path, const Selection& selection);

}  // namespace cytra::io
