#pragma once
// Files of TorchScript, for those who run them as they are. Include only from .cpp files.
#include <string>
#include <unordered_map>

#include <torch/csrc/jit/api/module.h>

#include "inference/imported/program.h"

namespace cytra::inference {

/// Told by its content. Throws: DataError for a ZIP archive that is cut.
bool is_torchscript(const std::string& path);

/// In evaluation mode, on `device`: a frozen module's weights are constants of its code, which
/// Module::to() leaves where they were loaded. `files`: those beside the code that are wanted, by
/// name. Nothing of it runs before all of its code was looked at. What it prints goes to the log.
/// Its methods belong into a ForeignCall (base/foreign_call.h). Throws: DataError unless it can be
/// loaded, and calls only what a model needs: no files, no other processes.
torch::jit::Module load_any_torchscript(const std::string& path,
                                        std::unordered_map<std::string, std::string>& files,
                                        c10::Device device = c10::kCPU);

/// Likewise. Throws: DataError also unless it has a forward() of one input, and optional ones.
torch::jit::Module load_torchscript(const std::string& path,
                                    std::unordered_map<std::string, std::string>& files,
                                    c10::Device device = c10::kCPU);

/// Of the file's bytes: a frozen module's weights are in its code.
std::string fingerprint_of_file(const std::string& path);

/// A model whose configuration is what export_model wrote into the file, if that wrote it.
Program open_torchscript(const std::string& path);

}  // namespace cytra::inference
