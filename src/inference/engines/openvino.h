#pragma once
// OpenVINO as an engine, and its files.
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::inference {

/// Writes OpenVINO's files PATH.xml and PATH.bin for a TorchScript archive that takes one tensor
/// of `shape`; -1: any size. Throws: ConfigError without OpenVINO, or where it lacks an operation
/// of the model; what AtomicFile throws.
void export_openvino(const std::string& torchscript,
                     const std::vector<int64_t>& shape,
                     const std::string& path);

}  // namespace cytra::inference
