#pragma once
#include <string>

namespace cytra::perf {

/// What torch says of a failure on a device, told to a user. Throws: DataError for an index beyond
/// its range (a label), ConfigError for a GPU, driver or setting that does not fit, IoError for
/// hardware that failed; returns when it is none of these.
void throw_device_error(const std::string& what);

}  // namespace cytra::perf
