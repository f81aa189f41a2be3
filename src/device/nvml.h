#pragma once
#include <memory>

#include "device/backend.h"

namespace cytra::device {

/// A GPU, as nvidia-smi sees it. NVML (libnvidia-ml.so.1, part of the driver) is loaded when one is
/// made. Source: NVML API reference.
class NvmlDevice final : public Gauge {
 public:
  /// `cuda_index`: of the devices that this process sees. Null where NVML does not know it.
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
