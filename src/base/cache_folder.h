#pragma once
#include <string>

namespace cytra {

/// $XDG_CACHE_HOME/cytra, else ~/.cache/cytra; "" where neither is an absolute path. It need not
/// be there. Source: XDG Base Directory Specification.
std::string cache_folder();

}  // namespace cytra
