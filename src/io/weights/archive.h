#pragma once
// Finds the kind of a model's file, and reads ZIP archives.
#include <map>
#include <string>

namespace cytra::io {

/// The kind of a model's file, by its content, not its name.
enum class ModelKind {
  weights,      // of a network that is registered here: ours, PyTorch's, safetensors
  torchscript,  // torch.jit.save
  aoti,         // torch._inductor.aoti_compile_and_package
  onnx,         // or OpenVINO's .xml, with its .bin beside it
  bioimageio,   // a package of its zoo: a folder, a ZIP archive of one, or its description
  bundle,       // of MONAI: a folder, or a ZIP archive of one
  nnunet        // of nnU-Net: a folder of its results, a ZIP archive of one, or a fold's checkpoint
};
/// Finds the kind of a file. Throws: DataError for a ZIP archive that is truncated, and for a
/// program of torch.export.
ModelKind kind_of(const std::string& path);

/// The folder of a trained model of nnU-Net, with plans.json and dataset.json: this one, or the
/// only one below it; of a checkpoint in such a folder's fold_N that folder. "": there is none.
/// Throws: DataError where several are below it.
std::string nnunet_folder(const std::string& path);

/// The file that describes the package in a folder (rdf.yaml, bioimageio.yaml, or the
/// only NAME.bioimageio.yaml); "": there is none.
std::string bioimageio_description(const std::string& folder);

/// The uncompressed files of a ZIP archive whose names end with `ending` ("constants.pkl"), by
/// their whole names. Throws: DataError.
std::map<std::string, std::string> unpack(const std::string& path, const std::string& ending);

}  // namespace cytra::io
