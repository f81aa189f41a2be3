#pragma once
// Packages of bioimage.io's model zoo.
#include <string>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

/// Opens a package by its folder or its description, of format 0.4 or 0.5
/// (github.com/bioimage-io/spec-bioimage-io): weights as TorchScript, ONNX, or a state dict of one
/// of MONAI's networks that are registered here. Its test image goes through the model, and a
/// warning says where the output is not the file's. Throws: ConfigError, DataError with the place
/// of what is not known here.
ImportedModel open_bioimageio(const std::string& path);

}  // namespace cytra::inference
