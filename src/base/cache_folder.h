#pragma once
#include <string>

namespace cytra {

/// The cache's folder: $XDG_CACHE_HOME/cytra, else ~/.cache/cytra; "" where neither is an absolute
/// path. The folder may not exist yet. Source: XDG Base Directory Specification.
std::string cache_folder();

}  // namespace cytra
