#pragma once
// The kernels of libcytra_cuda.so, which lies beside this library where a build has it.

namespace cytra::ops {

void* find_cuda_kernel(const char* name);

/// A launcher of src/ops/cuda by its name; null where this build has no such library.
template <class Launcher>
Launcher cuda_kernel(const char* name) {
  return reinterpret_cast<Launcher>(find_cuda_kernel(name));
}

}  // namespace cytra::ops
