#pragma once

namespace cytra {

/// Ends the process with this exit code, when what it writes is written: what C's streams hold,
/// too. The destructors of the engine's libraries are left out: a quarter of the processor time of
/// a short run. Returns the code, for main() to return, where such a destructor has work to do:
/// with a GPU, what watches it (nsys) writes its report, as does a sanitizer.
int end_process(int exit_code);

}  // namespace cytra
