// Packages of bioimage.io and bundles of MONAI.
#include <memory>

#include "base/files.h"
#include "inference/imported/complete.h"
#include "inference/imported/imported_model.h"
#include "inference/models/model_kinds.h"
#include "io/weights/unpacked_archive.h"

namespace cytra::inference {
namespace {

/// Opens a model of several files: a folder, or a ZIP archive, which is unpacked while the model
/// lives, as it may be loaded again for another device.
ImportedModel open_unpacked(const std::string& path, ImportedModel (*open)(const std::string&)) {
  if (folder_exists(path) || path.ends_with(".yaml") || path.ends_with(".yml")) return open(path);
  const auto archive = std::make_shared<const io::UnpackedArchive>(path);
  ImportedModel imported = open(archive->folder());
  imported.place = [archive, place = std::move(imported.place)](c10::Device device,
                                                                bool on_tensor_cores) {
    place(device, on_tensor_cores);
  };
  return imported;
}

template <ImportedModel (*open)(const std::string&)>
LoadedModel load_unpacked(const std::string& path, const CheckpointOptions& options) {
  return complete(path, open_unpacked(path, open), options);
}

const bool are_packages_added =
    add_model_kind(io::ModelKind::bioimageio, {load_unpacked<open_bioimageio>}) &&
    add_model_kind(io::ModelKind::bundle, {load_unpacked<open_bundle>});

}  // namespace
}  // namespace cytra::inference
