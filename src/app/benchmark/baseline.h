#pragma once
// A report against an earlier one.
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::app {

/// An earlier report. `report`: what is to be compared with it, with or without rows yet. Throws:
/// ConfigError where the earlier one is of another device, model or input; DataError where it is
/// none.
config::Node read_baseline(const std::string& path, const config::Node& report);

/// Adds to each row that the baseline has, too: `change` of the median (0.1: a tenth slower), and
/// `verdict`: slower or faster where both medians' intervals (of few runs: all times) lie apart,
/// else same. Returns a line for each row that is slower by more than `threshold_percent` and
/// beyond the noise, or that had figures and has none now; without a threshold none.
std::vector<std::string> compare(const config::Node& baseline,
                                 std::optional<double> threshold_percent,
                                 config::Node& report);

}  // namespace cytra::app
