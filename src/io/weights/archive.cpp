#include "io/weights/archive.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

/// Calls `action` with the archive's files by name. Throws: DataError.
auto with_files(const std::string& path, const auto& action) {
  InputFile file(path);
  file.map();
  return file.read_mapped([&](const unsigned char* first) {
    return action(zip_directory(
        path, {reinterpret_cast<const char*>(first), static_cast<std::size_t>(file.bytes())}));
  });
}

/// Whether a file begins as an ONNX model does, a protocol buffer without a signature: its version
/// (field 1), then another field of ModelProto.
bool begins_as_onnx(const std::string& begin) {
  return begin.size() == 16 && begin[0] == 8 && begin[1] > 0 && begin[1] < 64 && begin[8] != '{' &&
         std::string_view("\x12\x1a\x22\x28\x32\x3a\x42\x72").find(begin[2]) !=
             std::string_view::npos;
}

}  // namespace

std::string bioimageio_description(const std::string& folder) {
  for (const char* name : {"rdf.yaml", "bioimageio.yaml"}) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (file_exists(file)) return file.string();
  }
  std::vector<std::string> found;
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(folder, ignored);
       entry != std::filesystem::directory_iterator();
       entry.increment(ignored)) {
    const std::string file = entry->path().string();
    if (file.ends_with(".bioimageio.yaml") || file.ends_with(".rdf.yaml")) found.push_back(file);
  }
  return found.size() == 1 ? found[0] : "";
}

std::string nnunet_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto is_model = [&](const fs::path& folder) {
    return file_exists(folder / "plans.json") && file_exists(folder / "dataset.json");
  };
  if (!folder_exists(path)) {
    const fs::path fold = fs::absolute(path, ignored).parent_path();
    const bool is_fold = fold.filename().string().starts_with("fold_");
    return is_fold && is_model(fold.parent_path()) ? fold.parent_path().string() : "";
  }
  if (is_model(path)) return path;
  std::vector<std::string> found;  // DATASET/TRAINER__PLANS__CONFIGURATION
  fs::recursive_directory_iterator entry(path, ignored);
  for (; !ignored && entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    if (entry.depth() >= 1) entry.disable_recursion_pending();
    if (entry->is_directory(ignored) && is_model(entry->path()))
      found.push_back(entry->path().string());
  }
  std::ranges::sort(found);
  if (found.size() > 1) {
    throw DataError(
        "{}: {} models of nnU-Net, expected one of {}", path, found.size(), join(found, ", "));
  }
  return found.empty() ? "" : found[0];
}

ModelKind kind_of(const std::string& path) {
  if (!nnunet_folder(path).empty()) return ModelKind::nnunet;
  if (folder_exists(path))
    return bioimageio_description(path).empty() ? ModelKind::bundle : ModelKind::bioimageio;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return ModelKind::bioimageio;
  const std::string begin = InputFile(path).begin(16);
  if (begins_as_onnx(begin) || begin.starts_with("<?xml") || begin.starts_with("<net"))
    return ModelKind::onnx;
  if (!begin.starts_with("PK\3\4")) return ModelKind::weights;
  return with_files(path, [&](const std::map<std::string, std::string_view>& files) {
    for (const auto& [name, content] : files)  // which may hold any of the others
      if (name.ends_with("rdf.yaml") || name.ends_with("bioimageio.yaml"))
        return ModelKind::bioimageio;
    for (const auto& [name, content] : files) {
      if (name.ends_with("/plans.json")) return ModelKind::nnunet;
      if (name.ends_with("/constants.pkl")) return ModelKind::torchscript;
      if (name.find("/data/aotinductor/") != std::string::npos) return ModelKind::aoti;
      if (name.ends_with("configs/metadata.json") || name.ends_with("configs/inference.json"))
        return ModelKind::bundle;
      if (name.ends_with("/models/model.json") || name == "serialized_exported_program.json") {
        throw DataError(path +
                        ": a network of torch.export, without a task; train it (`train "
                        "model=exported model.file=net.pt2`) and predict with the checkpoint");
      }
    }
    return ModelKind::weights;
  });
}

std::map<std::string, std::string> unpack(const std::string& path, const std::string& ending) {
  return with_files(path, [&](const std::map<std::string, std::string_view>& files) {
    std::map<std::string, std::string> unpacked;
    for (const auto& [name, content] : files) {
      if (!name.ends_with(ending)) continue;
      if (content.data() == nullptr) throw DataError("{}: {} is compressed", path, printable(name));
      unpacked[name] = content;
    }
    return unpacked;
  });
}

}  // namespace cytra::io
