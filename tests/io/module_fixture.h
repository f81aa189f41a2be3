#pragma once
// Whether a format's module was built beside libcytra_io.so.
#include <filesystem>

#include <dlfcn.h>

#include "tests/io/fixture.h"

namespace cytra::io {

inline bool has_module(const std::string& name) {
  Dl_info io{};
  dladdr(reinterpret_cast<void*>(&open_image), &io);
  return std::filesystem::exists(std::filesystem::path(io.dli_fname).parent_path() /
                                 ("libcytra_" + name + ".so"));
}
#define SKIP_WITHOUT_MODULE(name) \
  if (!has_module(name)) GTEST_SKIP() << "NOT TESTED: libcytra_" << name << ".so was not built"

}  // namespace cytra::io
