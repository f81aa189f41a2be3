#pragma once
// Applies values of the command line to a composed tree.
#include <string>
#include <vector>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

/// Sets, adds or removes one value. `groups` are proposed besides the tree's keys when the key does
/// not exist. Source: ConfigLoaderImpl._apply_overrides_to_config of Hydra, OmegaConf.update and
/// OmegaConf.select.
void apply_override(Node& root, const Override& override, const std::vector<std::string>& groups);

}  // namespace cytra::config
