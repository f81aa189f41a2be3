#pragma once
// Masks in place of numbered objects, and other backgrounds than 0: task.object_values, background.
#include "config/node.h"

namespace cytra::tasks {

/// Where a task has object_values, adds a ComponentLabelsd after LoadImaged in each list of
/// transforms, which numbers the connected regions of the target with these values; where it has
/// background, an ObjectNumbersd. Returns whether anything changed.
/// Throws: ConfigError where no list loads the target.
bool number_objects(config::Node& data, const config::Node& task);

}  // namespace cytra::tasks
