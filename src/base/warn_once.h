#pragma once
#include <string>

namespace cytra {

/// Warns, unless this process has given the same warning before: readers are opened in every
/// epoch, but one line per image is enough. Thread: safe.
void warn_once(const std::string& line);

}  // namespace cytra
