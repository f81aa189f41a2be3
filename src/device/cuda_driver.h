#pragma once
#include <string>

namespace cytra::device {

/// The state of the NVIDIA driver, as it reports it.
struct CudaDriver {
  bool is_found = false;  // libcuda.so.1 can be loaded
  int devices = 0;        // that this process may see (CUDA_VISIBLE_DEVICES)
  int cuda = 0;           // the newest CUDA that it supports: 13000 is 13.0
  std::string problem;    // why it does not start; "" when it does, or there is no GPU
};

/// Asks the driver through libcuda.so.1, as torch will do: WSL 2 and gVisor have no
/// /proc/driver/nvidia.
CudaDriver cuda_driver();

/// A GPU as the driver describes it.
struct CudaGpu {
  std::string name;    // "NVIDIA H100 80GB HBM3"; "": unknown
  int capability = 0;  // compute capability: 90 is 9.0
};
CudaGpu cuda_gpu(int device);

/// Why libraries built for CUDA `needed` (13000) can't work with `driver`; "" when they can.
std::string too_old(const CudaDriver& driver, int needed);

}  // namespace cytra::device
