#include "io/module.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/format.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

struct Module {
  const char *name, *what, *format, *package;
};

[[noreturn]] void fail(const std::string& path, const Module& module, const std::string& why) {
  throw DataError(fmt::format("{}: {}, but {}", path, module.what, why));
}

ModuleEntry load(const std::string& path, const Module& module) {
  Dl_info own{};  // modules lie beside this library
  dladdr(reinterpret_cast<void*>(&is_dicom), &own);
  const fs::path library =
      fs::path(own.dli_fname).parent_path() / fmt::format("libcytra_{}.so", module.name);
  std::error_code error;
  if (!fs::exists(library, error)) {
    fail(path,
         module,
         fmt::format("this build has no {} support; install {} and build again",
                     module.format,
                     module.package));
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    fail(path, module, fmt::format("its module can't be loaded: {}", dlerror()));
  auto* entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  if (entry == nullptr) fail(path, module, fmt::format("its module is not ours: {}", dlerror()));
  return entry;
}

}  // namespace

bool is_dicom(const std::string& head, const std::string& path) {
  const auto has_magic = [](const std::string& bytes, const std::string& name) {
    // Slides may be TIFF at the same time; other files carry a TIFF's first bytes and no more
    const bool is_tiff_too =
        is_tiff(bytes, name) && (ends_with(name, ".tif") || ends_with(name, ".tiff"));
    return bytes.size() > 132 && bytes.compare(128, 4, "DICM") == 0 && !is_tiff_too;
  };
  if (!head.empty()) return has_magic(head, path);
  // A folder: its first files tell; there may be a text beside them.
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  int looked = 0;
  for (auto entry = fs::directory_iterator(path, error);
       !error && entry != fs::directory_iterator() && looked < 4;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name[0] == '.' || !entry->is_regular_file(ignored)) continue;
    ++looked;
    try {
      const InputFile file(entry->path().string());
      char bytes[133];
      const int64_t count = file.read_at(0, bytes, sizeof bytes);
      if (has_magic({bytes, static_cast<std::size_t>(std::max<int64_t>(count, 0))}, name))
        return true;
    } catch (const ConfigError&) {  // not readable
    }
  }
  return false;
}

std::unique_ptr<ImageReader> open_dicom(const std::string& path, const Selection& selection) {
  static const ModuleEntry open = load(path, {"dicom", "a DICOM file", "DICOM", "libdcmtk-dev"});
  return std::unique_ptr<ImageReader>(open(path, selection));
}

bool is_video(const std::string& head, const std::string&) {
  if (head.size() < 12) return false;
  const bool is_mp4 = head.compare(4, 4, "ftyp") == 0 || head.compare(4, 4, "moov") == 0 ||
                      head.compare(4, 4, "mdat") == 0 || head.compare(4, 4, "wide") == 0;
  return (is_mp4 || (head.compare(0, 4, "RIFF") == 0 && head.compare(8, 4, "AVI ") == 0) ||
          head.compare(0, 4, "\x1a\x45\xdf\xa3") == 0);  // Matroska, WebM
}

std::unique_ptr<ImageReader> open_video(const std::string& path, const Selection& selection) {
  static const ModuleEntry open =
      load(path, {"video", "a video", "video", "libopencv-videoio-dev"});
  return std::unique_ptr<ImageReader>(open(path, selection));
}

bool is_hdf5(const std::string& head, const std::string&) {
  return head.compare(0, 8, "\x89HDF\r\n\x1a\n") == 0;
}

std::unique_ptr<ImageReader> open_hdf5(const std::string& path, const Selection& selection) {
  static const ModuleEntry open = load(path, {"hdf5", "an HDF5 file", "HDF5", "libhdf5-dev"});
  return std::unique_ptr<ImageReader>(open(path, selection));
}

}  // namespace cytra::io
