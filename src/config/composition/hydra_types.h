#pragma once
// The types of Hydra's own settings.
#include "config/node.h"

namespace cytra::config {

/// Gives Hydra's settings the types they have there: job.num: '3' is 3, job.name: 3 is text.
/// Throws: ConfigError for a value that can't be one.
void set_hydra_types(Node& hydra);

}  // namespace cytra::config
