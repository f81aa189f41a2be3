#include "ops/cuda_kernel.h"

#include <mutex>

#include "base/shared_library.h"

namespace cytra::ops {

void* find_cuda_kernel(const char* name) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static SharedLibrary library(path_beside(&find_cuda_kernel, "libcytra_cuda.so"),
                               SharedLibrary::Symbols::local);
  return library.find<void*>(name);
}

}  // namespace cytra::ops
