#pragma once

namespace cytra {

/// To be called before libgomp starts its threads: it ends the process where it can't, without a
/// name, or crosses its stack. Throws: ConfigError for OMP_NUM_THREADS and MKL_NUM_THREADS beyond
/// 4096; IoError where the system lets this process start fewer threads than they, or the
/// processors, ask for.
void expect_threads();

}  // namespace cytra
