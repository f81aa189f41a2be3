#pragma once
// The interface of libcytra_openvino.so, which is beside our library and is loaded when OpenVINO
// is used. For engines/openvino.cpp and the module.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "inference/engines/entry.h"
#include "inference/engines/openvino.h"

namespace cytra::inference {

struct OpenVinoTask {
  std::function<std::string()> torchscript;  // the model's archive; not called when the compiled
                                             // model is kept
  std::shared_ptr<const std::string> onnx;   // the bytes of an ONNX file, instead, or of OpenVINO's
                                             // .xml, a zero byte and its .bin
  std::vector<int64_t> shape;                // of the windows of one inference
  int64_t at_once = 1;                       // simultaneous inferences, each with its share of the
                                             // threads
  c10::ScalarType type = c10::ScalarType::Float;  // of products
  std::string cache_folder, fingerprint;          // where compiled models are kept; "": they are
                                                  // not
  std::vector<Tensor> calibration;  // windows for quantization to int8; empty: no quantization
};
/// Makes the engine. Throws: EngineUnfit where OpenVINO can't run the model.
using OpenVinoEngine = FixedEngine* (*)(const OpenVinoTask& task);
constexpr char kOpenVinoEngine[] = "cytra_openvino_engine";

/// Does what describe_onnx() says.
using OnnxDescription = OnnxFacts (*)(const std::string& onnx,
                                      const std::string& path,
                                      const std::optional<OnnxEnds>& ends);
constexpr char kOnnxDescription[] = "cytra_openvino_onnx";

/// Does what export_openvino() says.
using OpenVinoExport = void (*)(const std::string& torchscript,
                                const std::vector<int64_t>& shape,
                                const std::string& config,
                                const std::string& path);
constexpr char kOpenVinoExport[] = "cytra_openvino_export";

}  // namespace cytra::inference
