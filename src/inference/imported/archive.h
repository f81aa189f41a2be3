#pragma once
// What a file is, and the parts of ZIP archives.
#include <map>
#include <string>

namespace cytra::inference {

/// What a file is, told by its content, not its name.
enum class ModelKind {
  weights,      // of a network that is registered here: ours, PyTorch's, safetensors
  torchscript,  // torch.jit.save
  aoti,         // torch._inductor.aoti_compile_and_package
  bundle        // of MONAI: a folder, or a ZIP archive of one
};
/// Throws: DataError for a ZIP archive that is cut, and for a program of torch.export.
ModelKind kind_of(const std::string& path);

/// The files of a ZIP archive whose name ends so: "constants.pkl", by their whole names. What is
/// compressed is unpacked. Throws: DataError.
std::map<std::string, std::string> unpack(const std::string& path, const std::string& ending);

}  // namespace cytra::inference
