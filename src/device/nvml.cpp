#include "device/nvml.h"

#include <array>

#include "base/shared_library.h"

namespace cytra::device {
namespace {

// Declarations of nvml.h and cuda.h, repeated so that no toolkit is needed.
struct Utilization {
  unsigned gpu, memory;  // %
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
constexpr int kSuccess = 0, kTemperatureGpu = 0;

/// The PCI bus address of the device: CUDA numbers devices in another order than NVML
/// (CUDA_VISIBLE_DEVICES, fastest first).
std::optional<std::array<char, 32>> bus_of(int cuda_index) {
  SharedLibrary driver("libcuda.so.1", SharedLibrary::Symbols::global);  // loaded as in
                                                                         // cuda_driver.cpp
  const auto init = driver.find<int (*)(unsigned)>("cuInit");
  const auto get = driver.find<int (*)(int*, int)>("cuDeviceGet");
  const auto bus_id = driver.find<int (*)(char*, int, int)>("cuDeviceGetPCIBusId");
  if (init == nullptr || get == nullptr || bus_id == nullptr) return std::nullopt;
  int device = 0;
  std::array<char, 32> bus{};
  if (init(0) != kSuccess || get(&device, cuda_index) != kSuccess ||
      bus_id(bus.data(), static_cast<int>(bus.size()), device) != kSuccess)
    return std::nullopt;
  return bus;
}

}  // namespace

struct NvmlDevice::Functions {
  SharedLibrary library{"libnvidia-ml.so.1", SharedLibrary::Symbols::local};
  int (*init)() = library.find<decltype(init)>("nvmlInit_v2");
  int (*by_bus)(const char*,
                void**) = library.find<decltype(by_bus)>("nvmlDeviceGetHandleByPciBusId_v2");
  int (*utilization)(void*, Utilization*) =
      library.find<decltype(utilization)>("nvmlDeviceGetUtilizationRates");
  int (*memory)(void*, NvmlMemory*) = library.find<decltype(memory)>("nvmlDeviceGetMemoryInfo");
  int (*power)(void*, unsigned*) = library.find<decltype(power)>("nvmlDeviceGetPowerUsage");
  int (*temperature)(void*,
                     int,
                     unsigned*) = library.find<decltype(temperature)>("nvmlDeviceGetTemperature");
};

std::unique_ptr<NvmlDevice> NvmlDevice::find(int cuda_index) {
  const auto functions = std::make_shared<const Functions>();
  void* handle = nullptr;
  if (functions->init == nullptr || functions->by_bus == nullptr || functions->init() != kSuccess)
    return nullptr;
  const auto bus = bus_of(cuda_index);
  if (!bus || functions->by_bus(bus->data(), &handle) != kSuccess) return nullptr;
  return std::unique_ptr<NvmlDevice>(new NvmlDevice(functions, handle));
}

GpuUsage NvmlDevice::usage() const {
  const Functions& nvml = *functions_;
  GpuUsage usage;
  Utilization utilization{};
  if (nvml.utilization != nullptr && nvml.utilization(handle_, &utilization) == kSuccess)
    usage.percent = utilization.gpu;
  NvmlMemory memory{};
  if (nvml.memory != nullptr && nvml.memory(handle_, &memory) == kSuccess) {
    usage.used_bytes = static_cast<int64_t>(memory.used);
    usage.total_bytes = static_cast<int64_t>(memory.total);
  }
  unsigned value = 0;
  if (nvml.power != nullptr && nvml.power(handle_, &value) == kSuccess)
    usage.power_w = value / 1000.0;  // mW
  if (nvml.temperature != nullptr && nvml.temperature(handle_, kTemperatureGpu, &value) == kSuccess)
    usage.temperature_c = value;
  return usage;
}

}  // namespace cytra::device
