#pragma once
#include <string>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

/// Whether a file is TorchScript, by its content. Throws: DataError for a ZIP archive that is
/// truncated.
bool is_torchscript(const std::string& path);

/// The fingerprint of the file's bytes: a frozen module's weights are in its code.
std::string fingerprint_of_file(const std::string& path);

/// Opens a model; its configuration is the one that export_model wrote into the file, if it did.
ImportedModel open_torchscript(const std::string& path);

}  // namespace cytra::inference
