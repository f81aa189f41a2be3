#include "device/backend.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/error.h"
#include "base/shared_library.h"

namespace cytra::device {

const std::vector<const Backend*>& accelerators() {
  static const std::vector<const Backend*> all{&cuda_backend()};
  return all;
}

const Backend* find_backend(c10::Device device) {
  if (device.is_cpu()) return &cpu_backend();
  for (const Backend* backend : accelerators()) {
    if (backend->type == device.type()) return backend;
  }
  return nullptr;
}

const Backend& backend_of(c10::Device device) {
  if (const Backend* backend = find_backend(device)) return *backend;
  throw ConfigError("device {}: expected cpu or cuda", device.str());
}

void* find_kernel(c10::Device device, const char* name, std::string* problem) {
  const Backend& backend = backend_of(device);
  const char* file = backend.kernels();
  if (file == nullptr) {
    if (problem != nullptr) *problem = fmt::format("{} has no library of kernels", backend.name);
    return nullptr;
  }
  static std::mutex mutex;
  static std::map<std::string, SharedLibrary> libraries;
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = libraries.find(file);
  if (found == libraries.end()) {
    found =
        libraries.try_emplace(file, path_beside(&find_kernel, file), SharedLibrary::Symbols::local)
            .first;
  }
  auto* function = found->second.find<void*>(name);
  if (problem != nullptr) *problem = found->second.problem();
  return function;
}

}  // namespace cytra::device
