#pragma once
// What a foreign program takes and gives: as it or the user says, else found by trying it out.
#include <exception>
#include <optional>
#include <string>

#include "inference/imported/program.h"
#include "inference/trained_model.h"

namespace cytra::inference {

/// The program as a model: what neither it nor `config` (task.model.{in_channels, spatial_dims,
/// divisor}) says is found by trying it out. Throws: DataError when no windows fit, naming the keys
/// that would say which do.
LoadedModel complete(const std::string& path,
                     Program program,
                     const std::optional<std::string>& config);

/// What torch says, without places in its sources.
std::string brief(const std::exception& error);

}  // namespace cytra::inference
