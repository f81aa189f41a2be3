#pragma once
#include <string>

namespace cytra {

/// Warns, unless this process has said the same line before: a reader is opened at every epoch, and
/// one line per image is enough. Thread: safe.
void warn_once(const std::string& line);

}  // namespace cytra
