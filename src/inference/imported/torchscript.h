#pragma once
// Loads files of TorchScript. Include only from .cpp files.
#include <string>
#include <unordered_map>

#include <torch/csrc/jit/api/module.h>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

/// Whether a file is TorchScript, by its content. Throws: DataError for a ZIP archive that is
/// truncated.
bool is_torchscript(const std::string& path);

/// Loads a module in evaluation mode on `device`. It must be loaded there, as a frozen module's
/// weights are constants of its code, which Module::to() does not move. `files`: wanted files
/// beside the code, by name. Nothing of it runs before all of its code was checked. Its output
/// goes to the log. Its methods must be called within a ForeignCall (base/foreign_call.h). Throws:
/// DataError unless it can be loaded, and calls only what a model needs: no files, no other
/// processes.
torch::jit::Module load_any_torchscript(const std::string& path,
                                        std::unordered_map<std::string, std::string>& files,
                                        c10::Device device = c10::kCPU);

/// Loads a model's module, as load_any_torchscript(). Throws: DataError also unless its forward()
/// takes one input, and optional ones.
torch::jit::Module load_torchscript(const std::string& path,
                                    std::unordered_map<std::string, std::string>& files,
                                    c10::Device device = c10::kCPU);

/// The fingerprint of the file's bytes: a frozen module's weights are in its code.
std::string fingerprint_of_file(const std::string& path);

/// Opens a model; its configuration is the one that export_model wrote into the file, if it did.
ImportedModel open_torchscript(const std::string& path);

}  // namespace cytra::inference
