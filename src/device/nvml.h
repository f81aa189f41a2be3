#pragma once
#include <memory>

#include "device/backend.h"

namespace cytra::device {

/// Measures a GPU's usage as nvidia-smi does. NVML (libnvidia-ml.so.1, part of the driver) is
/// loaded when the first is made. Source: NVML API reference.
class NvmlDevice final : public Gauge {
 public:
  /// Finds a device. `cuda_index`: its number among the devices that this process sees. Null where
  /// NVML does not know it.
  static std::unique_ptr<NvmlDevice> find(int cuda_index);
  GpuUsage usage() const override;

 private:
  struct Functions;
  NvmlDevice(std::shared_ptr<const Functions> functions, void* handle)
      : functions_(std::move(functions)), handle_(handle) {}
  std::shared_ptr<const Functions> functions_;
  void* handle_;
};

}  // namespace cytra::device
