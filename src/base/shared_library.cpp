#include "base/shared_library.h"

#include <filesystem>

#include <dlfcn.h>

namespace cytra {

SharedLibrary::SharedLibrary(const std::string& path, Symbols symbols)
    : handle_(::dlopen(path.c_str(),
                       RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL))) {
  if (handle_ == nullptr) problem_ = ::dlerror();
}

void* SharedLibrary::address_of(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const address = ::dlsym(handle_, name);
  problem_ = address == nullptr ? ::dlerror() : "";
  return address;
}

std::string folder_of_code(const void* address) {
  Dl_info holder{};
  ::dladdr(address, &holder);
  return std::filesystem::path(holder.dli_fname).parent_path().string();
}

}  // namespace cytra
