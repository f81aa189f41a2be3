#pragma once
#include <string>

#include "cli/mcp/tools.h"

namespace cytra::cli::mcp {

/// The summary of a run's folder, from its files: program, command, the metrics of each epoch, the
/// best one, checkpoints, files, the last messages. `folder`: as it is named in the answer; `path`:
/// where it is. Throws: ConfigError for a folder that no program of Cytra has written.
Json report_of_run(const std::string& folder, const std::string& path);

}  // namespace cytra::cli::mcp
