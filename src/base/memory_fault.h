#pragma once

namespace cytra {

/// Where a limit (`ulimit -d`, `ulimit -v`) holds for this process, libraries that do not look
/// whether they got memory fault in its absence. From now on such a fault, with hardly any memory
/// left below the limit, ends the program with exit code 5 and a line that says so, and so does the
/// exit(1) of a library that gets no thread; any other ends it as before. Does nothing without a
/// limit.
void explain_memory_faults();

}  // namespace cytra
