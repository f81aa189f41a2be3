#pragma once
#include <string>

#include "config/schema.h"

namespace cytra::config {

/// JSON Schema draft-07 for editors (yaml-language-server): of a program's primary and experiment
/// files (`group` "", "experiment", "debug", "local"), or of the files of the folder `group`
/// ("model", "trainer"). Every value may also be `???` or hold ${...}. Options are required only
/// in items of lists, which are never merged. Throws: ConfigError with the nearest group.
std::string json_schema(const OptionsType& root, const std::string& group);

}  // namespace cytra::config
