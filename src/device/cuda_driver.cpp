#include "device/cuda_driver.h"

#include <fstream>

#include <fmt/format.h>

#include "base/shared_library.h"

namespace cytra::device {
namespace {

// Constants of cuda.h, repeated so that no toolkit is needed. Source: CUDA Driver API.
constexpr int kNoDevice = 100;
using Init = int (*)(unsigned flags);
using Number = int (*)(int* result);
using Device = int (*)(int* device, int ordinal);
using DeviceName = int (*)(char* name, int length, int device);
using Attribute = int (*)(int* value, int attribute, int device);
constexpr int kMajorCapability = 75, kMinorCapability = 76;
using ErrorText = int (*)(int error, const char** text);

/// The driver's version, "550.54.14"; "" where the kernel does not report it.
std::string driver_number() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string number;
  std::getline(file, number);
  return number;
}

std::string cuda_number(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

CudaDriver cuda_driver() {
  CudaDriver driver;
  // The library is loaded globally, as torch needs it next.
  SharedLibrary library("libcuda.so.1", SharedLibrary::Symbols::global);
  if (!library.is_loaded()) return driver;
  driver.is_found = true;
  const auto init = library.find<Init>("cuInit");
  const auto count = library.find<Number>("cuDeviceGetCount");
  const auto version = library.find<Number>("cuDriverGetVersion");
  const auto text = library.find<ErrorText>("cuGetErrorString");
  if (init == nullptr || count == nullptr || version == nullptr || text == nullptr) {
    driver.problem = "libcuda.so.1 is not an NVIDIA driver";
    return driver;
  }
  version(&driver.cuda);
  int error = init(0);
  if (error == 0) error = count(&driver.devices);
  if (error == 0 || error == kNoDevice) return driver;
  driver.devices = 0;
  const char* reason = nullptr;
  text(error, &reason);
  driver.problem =
      fmt::format("the NVIDIA driver does not start: {} (error {}); nvidia-smi may tell more",
                  reason == nullptr ? "unknown" : reason,
                  error);
  return driver;
}

CudaGpu cuda_gpu(int ordinal) {
  CudaGpu gpu;
  SharedLibrary library("libcuda.so.1", SharedLibrary::Symbols::global);
  if (!library.is_loaded()) return gpu;
  const auto find = library.find<Device>("cuDeviceGet");
  const auto name = library.find<DeviceName>("cuDeviceGetName");
  const auto attribute = library.find<Attribute>("cuDeviceGetAttribute");
  int device = 0;
  if (find == nullptr || name == nullptr || attribute == nullptr || find(&device, ordinal) != 0)
    return gpu;
  char text[256] = "";
  int major = 0, minor = 0;
  if (name(text, sizeof(text), device) == 0) gpu.name = text;
  if (attribute(&major, kMajorCapability, device) == 0 &&
      attribute(&minor, kMinorCapability, device) == 0)
    gpu.capability = 10 * major + minor;
  return gpu;
}

std::string too_old(const CudaDriver& driver, int needed) {
  if (driver.cuda / 1000 >= needed / 1000) return "";  // any driver of the same major version does
  const std::string number = driver_number();
  const int major = needed / 1000;
  const int first = major >= 13 ? 580 : major == 12 ? 525 : 450;  // CUDA's release notes
  return fmt::format(
      "the NVIDIA driver{} is too old: it knows CUDA {}, LibTorch's libraries are of CUDA {} and "
      "need driver {} or newer; update it, or build with a LibTorch for CUDA {} (CYTRA_TORCH)",
      number.empty() ? "" : " " + number,
      cuda_number(driver.cuda),
      cuda_number(needed),
      first,
      driver.cuda / 1000);
}

}  // namespace cytra::device
