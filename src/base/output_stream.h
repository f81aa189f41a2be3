#pragma once
// Outputs that are no regular files: devices, FIFOs, /dev/stdout. They are written into, never
// replaced: a rename would put a file where the device was.
#include <string>

namespace cytra {

/// The open descriptor of what is at `path`, to be written into; -1: a file, or nothing yet, which
/// AtomicFile replaces. A link is followed below /dev and /proc alone: elsewhere somebody else may
/// have put it there.
/// Throws: ConfigError as AtomicFile.
int open_output_stream(const std::string& path);
/// A file without a name, for what `path` will get. Throws: as AtomicFile.
int open_nameless(const std::string& path);
/// All of the file `from`. Throws: as AtomicFile, with `path`.
void copy_to_stream(int from, int stream, const std::string& path);

}  // namespace cytra
