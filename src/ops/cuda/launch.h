#pragma once
// How a kernel is launched. tests/kernels/ops/cuda/launch.h replaces this file in tests: there the
// threads are threads of the host.
#include <algorithm>
#include <cstdint>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace cytra::ops {

/// Makes a device the current one while this object lives.
struct OnDevice : c10::cuda::CUDAGuard {
  explicit OnDevice(int device) : CUDAGuard(static_cast<c10::DeviceIndex>(device)) {}
};

/// Runs kernel(args...) in every thread of the grid, on the current stream. Does not wait.
/// Throws: c10::Error when CUDA refuses the grid.
template <class Kernel, class... Args>
void launch(Kernel kernel, dim3 grid, dim3 block, const Args&... args) {
  kernel<<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(args...);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace cytra::ops
