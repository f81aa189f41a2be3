#pragma once
// The functions of ${name:...}: OmegaConf's oc.*, Hydra's now and hydra, CytoDL's kv_to_dict and
// eval.
#include <string>
#include <vector>

#include "config/interpolation/interpolate.h"

namespace cytra::config {

/// Calls a function. `node` holds the text, `source` is the ${...} in it. Throws: ConfigError for
/// an unknown name (with the nearest), a wrong number or type of arguments.
Value call_resolver(Interpolator& tree,
                    const Site& node,
                    const std::string& source,
                    const std::string& name,
                    const std::vector<Value>& arguments);

}  // namespace cytra::config
