#pragma once
// MONAI's bundles.
#include <string>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

/// Opens a network that is registered here with the weights of a file: sets forward, place,
/// divisor and fingerprint. Throws: ConfigError, DataError.
void open_network(ImportedModel& imported, config::Node definition, const std::string& weights);

/// Opens a bundle and converts its transforms, sliding window and classes to ours. Throws:
/// ConfigError with the place of what is not known here.
ImportedModel open_bundle(const std::string& path);

}  // namespace cytra::inference
