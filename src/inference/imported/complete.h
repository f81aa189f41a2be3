#pragma once
// Completes the description of an imported model's inputs and outputs: by itself or the user, else
// by trying it out.
#include <string>

#include "inference/imported/imported_model.h"
#include "inference/models/trained_model.h"

namespace cytra::inference {

/// Makes a model of an imported one: values that neither it nor options.config
/// (task.model.{in_channels, spatial_dims, divisor}) gives are found by trying it out. Throws:
/// DataError when no windows fit, naming the keys by which the user can give the sizes.
LoadedModel complete(const std::string& path,
                     ImportedModel imported,
                     const CheckpointOptions& options);

}  // namespace cytra::inference
