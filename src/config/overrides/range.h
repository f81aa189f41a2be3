#pragma once
#include <vector>

#include "config/overrides/value.h"

namespace cytra::config {

constexpr std::size_t max_sweep_values = 10'000;

/// The values of a range, in order. Throws: std::invalid_argument (step 0, not finite, more than
/// max_sweep_values).
std::vector<Node> range_values(const SweepValue& range);

}  // namespace cytra::config
