#pragma once
// Compares a benchmark's report with an earlier one.
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::app {

/// Reads an earlier report. `report`: the new one that it is compared with; it may have no rows
/// yet. Throws: ConfigError where the earlier report is of another device, model or input;
/// DataError where the file is no report.
config::Node read_baseline(const std::string& path, const config::Node& report);

/// Adds to each row that the baseline also has: `change` of the median (0.1: a tenth slower), and
/// `verdict`: "slower" or "faster" where the intervals of both medians (of few runs: the ranges of
/// all times) do not overlap, else "same". Returns a line for each row that is slower by more than
/// `threshold_percent` and beyond the noise, or that had figures and has none now. Without a
/// threshold it returns no lines.
std::vector<std::string> compare(const config::Node& baseline,
                                 std::optional<double> threshold_percent,
                                 config::Node& report);

}  // namespace cytra::app
