#pragma once
// OpenVINO's models out of files.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <openvino/runtime/core.hpp>

#include "inference/engines/openvino_module.h"

namespace cytra::inference {

/// Begins the name of the input that tells the type that the file says it has; ours is float32.
inline const std::string kInputType = "cytra input type: ";

/// Makes OpenVINO's model of a file's bytes (as OpenVinoTask::onnx) for windows of `shape`; what
/// the file says itself (a batch of 1) stays. Throws: EngineUnfit.
std::shared_ptr<ov::Model> read_onnx(ov::Core& core,
                                     const std::string& onnx,
                                     const std::vector<int64_t>& shape);
/// Makes OpenVINO's model from a TorchScript archive that takes one tensor of `shape` (-1: any
/// size) and returns float32. Throws: EngineUnfit that names the operations that OpenVINO does not
/// have.
std::shared_ptr<ov::Model> read_torchscript(const std::string& archive,
                                            const std::vector<int64_t>& shape);
/// Throws: EngineUnfit for what is no ONNX, takes other inputs than one of numbers, or has an
/// operation that OpenVINO lacks.
OnnxFacts describe_onnx(ov::Core& core,
                        const std::string& onnx,
                        const std::string& path,
                        const std::optional<OnnxEnds>& ends);

/// The network with one input and outputs (N,C,[D,]H,W), as OnnxEnds says; itself where it has
/// these. Adds what it tells to `facts`. Throws: ConfigError for what nothing tells.
std::shared_ptr<ov::Model> with_usual_ends(const std::shared_ptr<ov::Model>& model,
                                           const std::string& path,
                                           const OnnxEnds& ends,
                                           OnnxFacts& facts);

/// The message without the places in OpenVINO's source such as "Exception from src/...:117:".
std::string brief_openvino(const std::string& what);

}  // namespace cytra::inference
