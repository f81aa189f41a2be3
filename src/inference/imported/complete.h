#pragma once
// Completes the description of a foreign program's inputs and outputs: by itself or the user, else
// by trying it out.
#include <exception>
#include <optional>
#include <string>

#include "inference/imported/program.h"
#include "inference/trained_model.h"

namespace cytra::inference {

/// Makes a model from the program: values that neither it nor `config` (task.model.{in_channels,
/// spatial_dims, divisor}) gives are found by trying it out. Throws: DataError when no windows
/// fit, naming the keys by which the user can give the sizes.
LoadedModel complete(const std::string& path,
                     Program program,
                     const std::optional<std::string>& config);

/// The message of torch without places in its sources.
std::string brief(const std::exception& error);

}  // namespace cytra::inference
