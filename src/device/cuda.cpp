// Part of device/backend.h: NVIDIA's GPUs, by CUDA.
#include <cstdlib>
#include <typeinfo>

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "base/shared_library.h"
#include "device/backend.h"
#include "device/cuda_driver.h"
#include "device/device.h"
#include "device/nvml.h"
#include "device/recorder.h"

namespace cytra::device {
namespace {

constexpr int kAmpere = 80;  // the compute capability that first has bfloat16 and TF32

const at::CUDAHooksInterface& hooks() {
  return at::detail::getCUDAHooks();
}

CudaGpu gpu_of(c10::Device device) {
  return cuda_gpu(device.has_index() ? device.index() : 0);
}

Absence load_cuda() {
  const CudaDriver driver = cuda_driver();
  if (!driver.is_found) return {"no NVIDIA driver is installed (libcuda.so.1 was not found)"};
  if (!driver.problem.empty()) return {driver.problem, false};
  if (driver.devices == 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return {"the NVIDIA driver shows no GPU" +
            (visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible))};
  }
  // Registers torch's CUDA backend; must come before the first question about devices. The path is
  // that of the torch in use: a bare name would be looked for beside libcytra_base.so, where there
  // is none.
  const SharedLibrary library(path_beside(&at::globalContext, "libtorch_cuda.so"),
                              SharedLibrary::Symbols::global);
  if (!library.is_loaded()) {
    return {fmt::format("LibTorch's CUDA libraries can't be loaded ({}); CYTRA_CUDA=ON "
                        "scripts/setup.sh installs them",
                        library.problem()),
            false};
  }
  const at::CUDAHooksInterface& torch = hooks();
  if (typeid(torch) == typeid(at::CUDAHooksInterface)) {  // chosen once, at the first question
    return {
        "torch was asked about CUDA before its CUDA libraries were loaded, and answers no from "
        "then on; call device::choose_device() before at::manual_seed() and the like",
        false};
  }
  if (std::string problem = too_old(driver, static_cast<int>(torch.versionCUDART()));
      !problem.empty())
    return {problem, false};
  if (!torch.hasCUDA() || torch.deviceCount() == 0)
    return {fmt::format("the NVIDIA driver shows {} GPUs, but torch shows none", driver.devices),
            false};
  // The allocator can't be asked before this.
  at::globalContext().lazyInitDevice(c10::kCUDA);
  return {};
}

/// NVIDIA's GPUs. The used memory is that of torch's allocator, which keeps some of it unused.
class Cuda final : public Backend {
 public:
  Cuda()
      : Backend(c10::kCUDA,
                "cuda",
                {.is_accelerator = true,
                 .has_own_memory = true,
                 .pins_memory = true,
                 .has_streams = true,
                 .has_graphs = true,
                 .has_tf32 = true,
                 .searches_algorithms = true}) {}
  Absence find() const override {
    static const Absence absence = load_cuda();
    return absence;
  }
  c10::Device current() const override { return c10::Device(type, hooks().getCurrentDevice()); }
  void set_current(c10::Device device) const override {
    c10::impl::VirtualGuardImpl(type).setDevice(device);
  }
  int64_t count() const override { return hooks().deviceCount(); }
  std::string describe(c10::Device device) const override {
    return fmt::format("cuda:{} ({})", device.index(), cuda_gpu(device.index()).name);
  }
  void synchronize(c10::Device device) const override { hooks().deviceSynchronize(device.index()); }

  int64_t peak_memory(c10::Device device) const override {
    return statistics(device).allocated_bytes[0].peak;
  }
  int64_t used_memory(c10::Device device) const override {
    return statistics(device).allocated_bytes[0].current;
  }
  int64_t free_memory(c10::Device device) const override {
    const auto stats = statistics(device);
    return static_cast<int64_t>(allocator()->getMemoryInfo(device.index()).first) +
           stats.reserved_bytes[0].current - stats.allocated_bytes[0].current;
  }
  void reset_peak_memory(c10::Device device) const override {
    allocator()->resetPeakStats(device.index());
  }
  void empty_cache(c10::Device /*device*/) const override {
    const std::lock_guard lock(recording_mutex());
    allocator()->emptyCache();
  }
  std::unique_ptr<Gauge> gauge(c10::Device device) const override {
    return NvmlDevice::find(device.index());
  }

  bool apply(const PerformanceOptions& options) const override {
    at::Context& context = at::globalContext();
    if (options.enable_tf32) context.setAllowTF32CuDNN(*options.enable_tf32);
    // Products follow matmul_precision, of which only "highest" excludes TF32; torch refuses to
    // report a setting that was made by both of its switches.
    if (options.enable_tf32 == true && options.matmul_precision == "highest")
      context.setAllowTF32CuBLAS(true);
    // What is fastest today need not be the algorithm that a run is to repeat.
    context.setBenchmarkCuDNN(options.enable_cudnn_benchmark && !context.deterministicAlgorithms());
    return true;
  }
  Tf32 tf32() const override {
    const at::Context& context = at::globalContext();
    return {context.allowTF32CuBLAS(), context.allowTF32CuDNN()};
  }
  void set_tf32(Tf32 wanted) const override {
    at::globalContext().setAllowTF32CuBLAS(wanted.products);
    at::globalContext().setAllowTF32CuDNN(wanted.convolutions);
  }
  std::string why_no_tf32(c10::Device device) const override {
    const int capability = gpu_of(device).capability;
    if (capability >= kAmpere) return "";
    return fmt::format(
        "TF32 needs compute capability 8.0, this GPU has {}.{}", capability / 10, capability % 10);
  }
  std::string why_slow(c10::ScalarType type, c10::Device device) const override {
    if (type == c10::kHalf) return "";
    const CudaGpu gpu = gpu_of(device);
    if (gpu.capability == 0 || gpu.capability >= kAmpere) return "";
    return fmt::format("{} (compute capability {}.{}) does not compute products in bfloat16",
                       gpu.name,
                       gpu.capability / 10,
                       gpu.capability % 10);
  }
  bool has_tensor_cores(c10::ScalarType compute, c10::Device device) const override {
    if (compute != c10::kFloat) return compute == c10::kHalf || compute == c10::kBFloat16;
    return at::globalContext().allowTF32CuDNN(at::Float32Op::CONV) &&
           gpu_of(device).capability >= kAmpere;
  }
  const char* fast_precision() const override { return "16-mixed"; }
  const char* kernels() const override { return "libcytra_cuda.so"; }

 private:
  c10::DeviceAllocator* allocator() const { return at::getDeviceAllocator(type); }
  c10::CachingDeviceAllocator::DeviceStats statistics(c10::Device device) const {
    return allocator()->getDeviceStats(device.index());
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const Cuda cuda;
  return cuda;
}

}  // namespace cytra::device
