#pragma once
// OpenVINO as an engine, and its files.
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::inference {

/// Writes PATH.xml and PATH.bin, OpenVINO's own files, of a TorchScript archive that takes one
/// tensor of `shape`; -1: any size. Throws: ConfigError without OpenVINO, or where that lacks an
/// operation of the model; as AtomicFile.
void export_openvino(const std::string& torchscript,
                     const std::vector<int64_t>& shape,
                     const std::string& path);

}  // namespace cytra::inference
