#pragma once
// Finds targets in a data set that can't have the meaning that the task gives them.
#include <string>
#include <vector>

#include "app/setup/setup.h"

namespace cytra::app {

/// Checks the targets of up to `images` images of training and of validation, spread over them,
/// after validation's transforms. Returns a line for each problem, with the option that solves it.
/// Images that can't be loaded are left to the loaders. `may_end`: the first of these that no
/// training can be meant with is thrown. Throws: ConfigError.
std::vector<std::string> check_targets(const Setup& setup, int64_t images, bool may_end = false);

}  // namespace cytra::app
