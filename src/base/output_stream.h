#pragma once
// Outputs that are no regular files: devices, FIFOs, /dev/stdout. Results are written into them,
// as a rename would replace the device by a file.
#include <string>

namespace cytra {

/// Opens what is at `path` for writing. Returns its descriptor; -1 for a regular file, or where
/// nothing is there, as AtomicFile replaces those. A link is followed below /dev and /proc only:
/// elsewhere somebody else may have put it there.
/// Throws: the ConfigErrors of AtomicFile.
int open_output_stream(const std::string& path);
/// Opens a file without a name for the future content of `path`. Throws: what AtomicFile throws.
int open_nameless(const std::string& path);
/// Copies the whole file `from` to `stream`. Throws: what AtomicFile throws, with `path`.
void copy_to_stream(int from, int stream, const std::string& path);

}  // namespace cytra
