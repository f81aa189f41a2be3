#pragma once
// ONNX files and OpenVINO's own, which OpenVINO runs on a CPU.
#include <string>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

/// `path`: an ONNX file, whose weights may lie in other files beside it, or NAME.xml beside
/// NAME.bin. Throws: DataError without OpenVINO, and for a file that it can't run as a network of
/// one image.
ImportedModel open_onnx(const std::string& path);

}  // namespace cytra::inference
