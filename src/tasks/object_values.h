#pragma once
// Masks in place of numbered objects: task.object_values.
#include "config/node.h"

namespace cytra::tasks {

/// Where a task has object_values: numbers the pieces of its target that have these values, by a
/// ComponentLabelsd behind LoadImaged in each list of transforms. Returns whether anything changed.
/// Throws: ConfigError where no list loads the target.
bool number_objects(config::Node& data, const config::Node& task);

}  // namespace cytra::tasks
