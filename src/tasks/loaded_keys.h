#pragma once
// What the keys of a task ask of data.transforms.
#include "config/node.h"

namespace cytra::tasks {

/// Adds the images that a task names beside its image and its target (mask_key, class_key) to
/// data.columns and, in each list of transforms that loads the target but not them, to the
/// transforms of the target. Returns whether anything changed.
bool load_named_keys(config::Node& data, const config::Node& task);

/// Where a task has masks in place of numbered objects (object_values), adds a ComponentLabelsd
/// after LoadImaged in each list of transforms, which numbers the connected regions of the target
/// with these values; where it has another background than 0, an ObjectNumbersd. Returns whether
/// anything changed. Throws: ConfigError where no list loads the target.
bool number_objects(config::Node& data, const config::Node& task);

}  // namespace cytra::tasks
