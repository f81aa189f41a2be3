#pragma once
// Images that a task names beside its image and its target: mask_key, class_key.
#include "config/node.h"

namespace cytra::tasks {

/// Adds them to data.columns, and to the transforms of the target, as the target is treated, in
/// each list of transforms that loads the target but not them. Returns whether anything changed.
bool load_named_keys(config::Node& data, const config::Node& task);

}  // namespace cytra::tasks
