#pragma once
// Exports ONNX, for ONNX Runtime, OpenVINO, TensorRT and others: https://onnx.ai, opset 17.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cytra::exporting {

/// The shapes that an ONNX model takes.
struct OnnxShapes {
  int64_t in_channels = 1, spatial_dims = 2;
  std::vector<int64_t> fixed;  // all sides, where the model takes no others; empty: any batch, any
                               // sides
};

/// Converts the TorchScript of a model in evaluation mode (by exporting::to_torchscript, or a
/// user's) to the bytes of an ONNX file: input "image" (N,C,[D,]H,W) float32, outputs "output",
/// "output_1", ...; weights are inside, `metadata` becomes metadata_props. Throws: DataError
/// naming the operators that have no ONNX form here, for control flow, and for more than 2 GB,
/// protobuf's limit.
std::string to_onnx(const std::string& torchscript,
                    const OnnxShapes& shapes,
                    const std::map<std::string, std::string>& metadata);

}  // namespace cytra::exporting
