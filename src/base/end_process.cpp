#include "base/end_process.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace cytra {

int end_process(int exit_code) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == nullptr) {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }
#endif
  return exit_code;
}

}  // namespace cytra
