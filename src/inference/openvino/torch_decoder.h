#pragma once
#include <memory>
#include <string>
#include <vector>

#include <openvino/core/model.hpp>

namespace cytra::inference {

/// Makes OpenVINO's model from a TorchScript archive that takes one tensor of `shape` (-1: any
/// size) and returns float32. Throws: EngineUnfit that names the operations that OpenVINO does not
/// have.
std::shared_ptr<ov::Model> read_torchscript(const std::string& archive,
                                            const std::vector<int64_t>& shape);

}  // namespace cytra::inference
