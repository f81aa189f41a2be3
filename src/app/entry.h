#pragma once
// Entry points of the engine, found by name (cli::Program::entry).
#include <functional>

#include "cli/program.h"

namespace cytra::app {

/// Runs a program's work; torch's own errors become ours (out of memory: MemoryError; else a plain
/// failure).
int guarded(const std::function<int()>& work);

/// Makes the run's folder (a number is appended when it is taken, and every value that names the
/// folder follows), saves the configuration in its .hydra folder, and sends the log to
/// <program>.log there. Returns the folder.
std::string open_run_folder(cli::Run& run);

/// A command line that starts another of our programs, ready to paste.
std::string command(const std::string& program, const std::vector<std::string>& overrides);

}  // namespace cytra::app
