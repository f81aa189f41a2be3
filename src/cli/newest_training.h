#pragma once
#include <string>
#include <vector>

namespace cytra::cli {

struct Arguments;

/// Whether the overrides choose neither an experiment nor data.
bool names_no_training(const std::vector<std::string>& overrides);
/// Puts the newest training before the overrides, and says which: what the newest run below `logs`
/// was started with, or an experiment of `train --plan` that is newer (in the folder `local`).
/// Throws: ConfigError when there is neither.
void take_newest_training(const std::string& logs, Arguments& arguments);

}  // namespace cytra::cli
