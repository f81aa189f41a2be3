#pragma once
// What can't be meant in a data set's targets, as the task takes them.
#include <string>
#include <vector>

#include "app/setup/setup.h"

namespace cytra::app {

/// Looks at up to `images` of training and of validation, spread over them, as validation's
/// transforms give them: a line for each problem, with the option that mends it. Images that can't
/// be loaded are left to the loaders.
std::vector<std::string> check_targets(const Setup& setup, int64_t images);

}  // namespace cytra::app
