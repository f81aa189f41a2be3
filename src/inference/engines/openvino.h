#pragma once
// OpenVINO as an engine, and its files.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

/// What is said of an ONNX file's input and output; "": as the file tells.
struct OnnxEnds {
  static constexpr const char* kAll = "*";
  std::string layout;  // the axes of the input, as "NHWC"
  std::string output;  // the name or number of the result, or kAll
};

/// What an ONNX file, or one of OpenVINO, says of itself.
struct OnnxFacts {
  std::vector<int64_t> shape;  // of its input, -1: any size; empty: it is not known
  std::string config;          // metadata_props' `config`, of export_model
  std::string whole;           // the network, where the file's bytes alone are not it: weights lie
                               // in other files, or axes were turned
  bool ends_with_sigmoid = false;
  std::vector<std::string> remarks;  // what its shapes told
};
/// Describes a network that OpenVINO reads; `onnx`: the bytes of an ONNX file, or of OpenVINO's
/// .xml, a zero byte and its .bin; `path`: the file's, beside which other files with weights may
/// lie; `ends`: its input and output become (N,C,[D,]H,W); null: they stay as they are. Throws:
/// EngineUnfit without OpenVINO, and for what it can't run as a network of one image; ConfigError
/// for ends that nothing tells.
OnnxFacts describe_onnx(const std::string& onnx,
                        const std::string& path,
                        const std::optional<OnnxEnds>& ends);

/// The network of such bytes: windows (S,C,[D,]H,W) float32 on the CPU -> its outputs. The first
/// windows of a size compile it for that. Throws: EngineUnfit.
std::function<std::vector<Tensor>(const Tensor&)> onnx_forward(
    std::shared_ptr<const std::string> onnx);

/// Writes OpenVINO's files PATH.xml and PATH.bin for a TorchScript archive that takes one tensor
/// of `shape`; -1: any size. `config`: the configuration, which describe_onnx() finds. Throws:
/// ConfigError without OpenVINO, or where it lacks an operation of the model; what AtomicFile
/// throws.
void export_openvino(const std::string& torchscript,
                     const std::vector<int64_t>& shape,
                     const std::string& config,
                     const std::string& path);

}  // namespace cytra::inference
