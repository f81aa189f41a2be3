#pragma once
#include <optional>
#include <string>

#include "config/node.h"

namespace cytra::inference {

/// The configuration, as LoadedModel's, of Cellpose-SAM's bare weights (`cpsam`, `cpsam_v2`, what
/// cellpose 4 trains), whose names and shapes tell the network: Cellpose's preprocessing, windows
/// and labels; objects of 30 pixels for predict.diameter. Nothing: the file is of something else.
/// Throws: DataError for other networks of Cellpose.
std::optional<config::Node> cellpose_config(const std::string& path);

}  // namespace cytra::inference
