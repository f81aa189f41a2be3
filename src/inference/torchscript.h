#pragma once
// Files of TorchScript, for those who run them as they are. Include only from .cpp files.
#include <string>
#include <unordered_map>

#include <torch/csrc/jit/api/module.h>

namespace cytra::inference {

/// Told by its content. Throws: DataError for a ZIP archive that is cut.
bool is_torchscript(const std::string& path);

/// In evaluation mode, on `device`: a frozen module's weights are constants of its code, which
/// Module::to() leaves where they were loaded. `files`: those beside the code that are wanted, by
/// name. Throws: DataError unless it can be loaded, has a forward() of one input (and optional
/// ones), and works on no files.
torch::jit::Module load_torchscript(const std::string& path,
                                    std::unordered_map<std::string, std::string>& files,
                                    c10::Device device = c10::kCPU);

/// Of its code and weights.
std::string fingerprint_of(const torch::jit::Module& module);

}  // namespace cytra::inference
