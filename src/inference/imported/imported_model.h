#pragma once
// Models that other frameworks have written: their descriptions, and what opens them.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/engines/openvino.h"
#include "inference/models/trained_model.h"

namespace cytra::inference {

/// A model in a file of another framework, with its own description.
struct ImportedModel {
  Forward forward;
  std::function<std::string()> torchscript;
  std::shared_ptr<const std::string> onnx;
  MoveModel place;
  int64_t in_channels = 0, spatial_dims = 0;       // 0: not known
  std::vector<int64_t> window;                     // the only sides it takes; empty: not known
  std::vector<int64_t> divisor;                    // as LoadedModel's; empty: not known
  config::Node config = config::Node::make_map();  // as LoadedModel's; what is known of it
  std::string fingerprint;
  std::string activation;  // that it is known to end with, "sigmoid" or "softmax"
};

/// Opens a model for OpenVINO, on a CPU. `path`: an ONNX file, whose weights may lie in other files
/// beside it, or NAME.xml beside NAME.bin; `ends`: as describe_onnx(). Throws: DataError without
/// OpenVINO, and for a file that it can't run as a network of one image; ConfigError.
ImportedModel open_onnx(const std::string& path, const std::optional<OnnxEnds>& ends);

/// Opens a package of AOTInductor.
ImportedModel open_aoti(const std::string& path);

/// Whether a file is TorchScript, by its content. Throws: DataError for a ZIP archive that is
/// truncated.
bool is_torchscript(const std::string& path);

/// The fingerprint of the file's bytes: a frozen module's weights are in its code.
std::string fingerprint_of_file(const std::string& path);

/// Opens a model; its configuration is the one that export_model wrote into the file, if it did.
ImportedModel open_torchscript(const std::string& path);

/// Opens a network that is registered here with the weights of a file: sets forward, place,
/// divisor and fingerprint. Throws: ConfigError, DataError.
void open_network(ImportedModel& imported, config::Node definition, const std::string& weights);

/// Opens a bundle and converts its transforms, sliding window and classes to ours. Throws:
/// ConfigError with the place of what is not known here.
ImportedModel open_bundle(const std::string& path);

/// Opens a package by its folder or its description, of format 0.4 or 0.5
/// (github.com/bioimage-io/spec-bioimage-io): weights as TorchScript, ONNX, or a state dict of one
/// of MONAI's networks that are registered here. Its test image goes through the model, and a
/// warning says where the output is not the file's. Throws: ConfigError, DataError with the place
/// of what is not known here.
ImportedModel open_bioimageio(const std::string& path);

}  // namespace cytra::inference
