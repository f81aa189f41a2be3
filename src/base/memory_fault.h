#pragma once

namespace cytra {

/// Explains faults by missing memory. Under a limit (`ulimit -d`, `ulimit -v`) some libraries use
/// memory without checking whether they got it. From now on such a fault, with hardly any memory
/// left below the limit, ends the program with exit code 5 and a line that says so, and so does
/// the exit(1) of a library that gets no thread; any other fault ends it as before. Does nothing
/// without a limit.
void explain_memory_faults();

}  // namespace cytra
