#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace cytra::cli {

struct Arguments;

/// The newest file below `folder` for which `is_it`; "" when there is none.
std::filesystem::path newest_file(const std::filesystem::path& folder,
                                  const std::function<bool(const std::filesystem::path&)>& is_it);
/// Whether the overrides choose neither an experiment nor data.
bool names_no_training(const std::vector<std::string>& overrides);
/// Puts the newest training before the overrides, and says which: what the newest run below `logs`
/// was started with, or an experiment of `train --plan` that is newer (in the folder `local`).
/// Throws: ConfigError when there is neither.
void take_newest_training(const std::string& logs, Arguments& arguments);

}  // namespace cytra::cli
