#pragma once

namespace cytra {

/// Checks that threads can be started. Must be called before libgomp starts its threads: where it
/// can't, it ends the process without naming the cause, or overruns its stack. Throws: ConfigError
/// for OMP_NUM_THREADS and MKL_NUM_THREADS beyond 4096; IoError where the system lets this process
/// start fewer threads than they, or the processors, ask for.
void expect_threads();

}  // namespace cytra
