#include "device/device.h"

#include <cstdlib>
#include <fstream>
#include <typeinfo>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "device/cuda_driver.h"

namespace cytra::device {
namespace {

constexpr const char* kNoDriver = "no NVIDIA driver is there (libcuda.so.1)";
constexpr const char* kNoGpu = "the NVIDIA driver shows no GPU";

/// Why there is no CUDA device, or "" when there is one.
std::string load_cuda() {
  static const std::string problem = []() -> std::string {
    const CudaDriver driver = cuda_driver();
    if (!driver.is_found) return kNoDriver;
    if (!driver.problem.empty()) return driver.problem;
    if (driver.devices == 0) {
      const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
      return visible == nullptr ? kNoGpu
                                : fmt::format("{} (CUDA_VISIBLE_DEVICES={})", kNoGpu, visible);
    }
    // Registers torch's CUDA backend; must come before the first question about devices. By the
    // path of the torch that runs: a bare name is looked for beside libcytra_base.so, which knows
    // none.
    const SharedLibrary library(path_beside(&at::globalContext, "libtorch_cuda.so"),
                                SharedLibrary::Symbols::global);
    if (!library.is_loaded()) {
      return fmt::format(
          "LibTorch's CUDA libraries can't be loaded ({}); CYTRA_CUDA=ON scripts/setup.sh installs "
          "them",
          library.problem());
    }
    const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
    if (typeid(hooks) == typeid(at::CUDAHooksInterface)) {  // chosen once, at the first question
      return "torch was asked about CUDA before its CUDA libraries were loaded, and answers no "
             "from then on; call device::choose_device() before at::manual_seed() and the like";
    }
    if (std::string problem = too_old(driver, static_cast<int>(hooks.versionCUDART()));
        !problem.empty())
      return problem;
    if (!hooks.hasCUDA() || hooks.deviceCount() == 0)
      return fmt::format("the NVIDIA driver shows {} GPUs, torch none", driver.devices);
    // The allocator answers no question before.
    at::globalContext().lazyInitDevice(c10::kCUDA);
    return "";
  }();
  return problem;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (starts_with(line, "model name")) return trim(line.substr(line.find(':') + 1));
  }
  return "CPU";
}

}  // namespace

c10::Device choose_device(const std::string& accelerator) {
  if (accelerator == "cpu") return c10::kCPU;
  const std::string problem = load_cuda();
  if (problem.empty())  // the GPU of this thread: each process among several has set its own
    return c10::Device(c10::kCUDA, at::detail::getCUDAHooks().getCurrentDevice());
  if (accelerator != "auto") {
    throw ConfigError(fmt::format(
        "trainer.accelerator={}: {}; use trainer.accelerator=cpu (or auto)", accelerator, problem));
  }
  // Without a GPU the CPU is what is meant; with one, it lies idle.
  const bool is_meant = problem == kNoDriver || starts_with(problem, kNoGpu);
  log::write(is_meant ? log::Level::debug : log::Level::warn, "using the CPU: " + problem);
  return c10::kCPU;
}

void prepare(const PerformanceOptions& options, const std::string& deterministic) {
  if (options.max_split_size_mb > 0 && options.max_split_size_mb < 20) {  // torch's own limit
    throw ConfigError(
        fmt::format("performance.max_split_size_mb: expected 0 or at least 20, got {}",
                    options.max_split_size_mb));
  }
  std::vector<std::string> settings;
  if (options.max_split_size_mb > 0)
    settings.push_back(fmt::format("max_split_size_mb:{}", options.max_split_size_mb));
  if (options.expandable_segments) settings.emplace_back("expandable_segments:True");
  if (options.memory_fraction < 1)
    settings.push_back(fmt::format("per_process_memory_fraction:{}", options.memory_fraction));
  // Both are names that torch knows; the first wins there.
  const bool is_set = std::getenv("PYTORCH_ALLOC_CONF") != nullptr ||
                      std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr;
  if (!settings.empty() && !is_set) setenv("PYTORCH_ALLOC_CONF", join(settings, ",").c_str(), 1);
  if (deterministic == "false") return;
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/deterministic == "warn");
  context.setDeterministicCuDNN(true);
  context.setDeterministicFillUninitializedMemory(false);  // costs time, and nothing reads it
}

namespace {

/// torch takes every core that it sees; a container may have less time than that. 0: as torch has
/// chosen, or the user by OpenMP's or MKL's variable.
int threads_of(const PerformanceOptions& options) {
  if (options.num_threads > 0) return static_cast<int>(options.num_threads);
  if (std::getenv("OMP_NUM_THREADS") != nullptr || std::getenv("MKL_NUM_THREADS") != nullptr)
    return 0;
  const int most = available_processors();
  return most < at::get_num_threads() ? most : 0;
}

}  // namespace

void apply(const PerformanceOptions& options, c10::Device device) {
  if (const int threads = threads_of(options); threads > 0) at::set_num_threads(threads);
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision(options.matmul_precision);
  if (device.is_cuda()) {
    if (options.enable_tf32) context.setAllowTF32CuDNN(*options.enable_tf32);
    // Of products matmul_precision decides, of which "highest" alone is below TF32; torch refuses
    // to answer for what both of its switches have set.
    if (options.enable_tf32 == true && options.matmul_precision == "highest")
      context.setAllowTF32CuBLAS(true);
    context.setBenchmarkCuDNN(options.enable_cudnn_benchmark);
    return;
  }
  std::vector<std::string> idle;
  if (options.enable_tf32 == true) idle.emplace_back("enable_tf32");
  if (options.enable_cudnn_benchmark) idle.emplace_back("enable_cudnn_benchmark");
  if (options.max_split_size_mb > 0) idle.emplace_back("max_split_size_mb");
  if (options.expandable_segments) idle.emplace_back("expandable_segments");
  if (options.memory_fraction < 1) idle.emplace_back("memory_fraction");
  static std::string told;  // it is applied again and again where settings are measured
  const std::string text = join(idle, ", ");
  if (!idle.empty() && std::exchange(told, text) != text)
    log::info("performance: no effect on a CPU: {}", text);
}

namespace {

/// "VmHWM:", in bytes.
int64_t of_process(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (starts_with(line, name)) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

auto allocated_bytes(c10::Device device) {
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[0];
}

}  // namespace

int64_t peak_memory(c10::Device device) {
  return device.is_cuda() ? allocated_bytes(device).peak : of_process("VmHWM:");
}

int64_t used_memory(c10::Device device) {
  return device.is_cuda() ? allocated_bytes(device).current : of_process("VmRSS:");
}

void reset_peak_memory(c10::Device device) {
  if (device.is_cuda()) {
    at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  } else {
    release_unused_memory();  // else the peak would be that of what was done before
    std::ofstream("/proc/self/clear_refs") << "5";  // Linux: the peak becomes the present value
  }
}

void synchronize(c10::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

std::string describe(c10::Device device) {
  if (device.is_cuda())
    return fmt::format("cuda:{} ({})", device.index(), cuda_gpu(device.index()).name);
  return fmt::format("cpu ({}, {} threads)", processor_name(), at::get_num_threads());
}

}  // namespace cytra::device
