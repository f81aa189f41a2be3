#pragma once
// Images that a task names beside its image and its target: mask_key, class_key.
#include "config/node.h"

namespace cytra::tasks {

/// Adds these images to data.columns and, in each list of transforms that loads the target but not
/// them, to the transforms of the target. Returns whether anything changed.
bool load_named_keys(config::Node& data, const config::Node& task);

}  // namespace cytra::tasks
