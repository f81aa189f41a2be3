#pragma once
// The jobs that --multirun runs. Source: BasicSweeper of Hydra 1.3.8.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/overrides/overrides.h"

namespace cytra::config {

/// The options of a group: "model" -> {"unet", "vit"}; empty when there is no such group.
using GroupOptions = std::function<std::vector<std::string>(const std::string& group)>;

/// The overrides of each job, as text: every combination of the values, those of the last override
/// change fastest. `file_params` (key and value of hydra.sweeper.params) come first; an override of
/// the same key takes the place of an earlier one. Overrides without a sweep, and values that were
/// typed, stay as they were typed. Without any sweep there is one job.
/// Throws: ConfigError for interval(), a sweep over hydra's own keys or over no value, a glob()
/// that matches nothing, more than 10,000 jobs.
std::vector<std::vector<std::string>> sweep_jobs(
    const std::vector<Override>& overrides,
    const std::vector<std::pair<std::string, std::string>>& file_params,
    const GroupOptions& options_of_group);

/// Whether `name` matches a pattern of *, ?, [abc] and [!a-z], as by Python's fnmatch.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace cytra::config
