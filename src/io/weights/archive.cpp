#include "io/weights/archive.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

/// Calls `action` with the archive's files by name. Throws: DataError.
template <class Action>
auto with_files(const std::string& path, const Action& action) {
  InputFile file(path);
  file.map();
  return file.read_mapped([&](const unsigned char* first) {
    return action(zip_directory(
        path, {reinterpret_cast<const char*>(first), static_cast<std::size_t>(file.bytes())}));
  });
}

bool is_zip(const std::string& path) {
  const InputFile file(path);
  std::string begin(4, '\0');
  return file.read_at(0, begin.data(), begin.size()) == 4 && begin == "PK\3\4";
}

}  // namespace

ModelKind kind_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return ModelKind::bundle;
  if (!is_zip(path)) return ModelKind::weights;
  return with_files(path, [&](const std::map<std::string, std::string_view>& files) {
    for (const auto& [name, content] : files) {
      if (ends_with(name, "/constants.pkl")) return ModelKind::torchscript;
      if (name.find("/data/aotinductor/") != std::string::npos) return ModelKind::aoti;
      if (ends_with(name, "configs/metadata.json") || ends_with(name, "configs/inference.json"))
        return ModelKind::bundle;
      if (ends_with(name, "/models/model.json") || name == "serialized_exported_program.json") {
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
      if (!ends_with(name, ending)) continue;
      if (content.data() == nullptr)
        throw DataError(fmt::format("{}: {} is compressed", path, printable(name)));
      unpacked[name] = content;
    }
    return unpacked;
  });
}

}  // namespace cytra::io
