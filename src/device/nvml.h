#pragma once
#include <cstdint>
#include <memory>
#include <optional>

namespace cytra::device {

/// What a GPU says of itself; what it does not say (parts of a GPU: MIG) is absent.
struct GpuUsage {
  std::optional<double> percent;  // of the time in which a kernel ran, in the last second or less
  std::optional<int64_t> used_bytes, total_bytes;  // of all processes
  std::optional<double> power_w, temperature_c;
};

/// A GPU, as nvidia-smi sees it. NVML (libnvidia-ml.so.1, part of the driver) is loaded when one is
/// made. Source: NVML API reference.
class NvmlDevice {
 public:
  /// `cuda_index`: of the devices that this process sees. Null where NVML does not know it.
  static std::unique_ptr<NvmlDevice> find(int cuda_index);
  GpuUsage usage() const;

 private:
  struct Functions;
  NvmlDevice(std::shared_ptr<const Functions> functions, void* handle)
      : functions_(std::move(functions)), handle_(handle) {}
  std::shared_ptr<const Functions> functions_;
  void* handle_;
};

}  // namespace cytra::device
