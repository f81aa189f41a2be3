// Part of device/backend.h: the CPU.
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/memory.h"
#include "base/strings.h"
#include "device/backend.h"
#include "device/convolution.h"

namespace cytra::device {
namespace {

/// The value of the first line that begins with `name`; "" without one.
std::string line_of(const char* path, const char* name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return trim(line.substr(line.find(':') + 1));
  }
  return "";
}

/// A value of the process's memory ("VmHWM"), in bytes.
int64_t memory_of_process(const char* name) {
  const std::string kilobytes = line_of("/proc/self/status", name);
  return kilobytes.empty() ? 0 : std::stoll(kilobytes) * 1024;
}

/// Whether the CPU multiplies this type: AVX512_BF16, or matrix units.
bool cpu_multiplies(c10::ScalarType type) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_avx512_bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
  return has_matrix_units(type) || (type != c10::kHalf && has_avx512_bf16);
#else
  return type != c10::kHalf;
#endif
}

/// The CPU, whose memory is that of the process.
class Cpu final : public Backend {
 public:
  Cpu() : Backend(c10::kCPU, "cpu", {}) {}
  c10::Device current() const override { return c10::kCPU; }
  std::string describe(c10::Device /*device*/) const override {
    const std::string model = line_of("/proc/cpuinfo", "model name");
    return fmt::format(
        "cpu ({}, {} threads)", model.empty() ? "CPU" : model, at::get_num_threads());
  }
  int64_t peak_memory(c10::Device /*device*/) const override { return memory_of_process("VmHWM:"); }
  int64_t used_memory(c10::Device /*device*/) const override { return memory_of_process("VmRSS:"); }
  int64_t free_memory(c10::Device /*device*/) const override { return available_memory().bytes; }
  void reset_peak_memory(c10::Device /*device*/) const override {
    release_unused_memory();                        // else the peak would be that of earlier work
    std::ofstream("/proc/self/clear_refs") << "5";  // Linux: the peak becomes the present value
  }
  void empty_cache(c10::Device /*device*/) const override { release_unused_memory(); }
  std::string why_no_tf32(c10::Device /*device*/) const override {
    return "TF32 needs an NVIDIA GPU";
  }
  std::string why_slow(c10::ScalarType type, c10::Device /*device*/) const override {
    if (cpu_multiplies(type)) return "";
    return fmt::format("this CPU does not compute products in {}",
                       type == c10::kHalf ? "float16" : "bfloat16");
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const Cpu cpu;
  return cpu;
}

}  // namespace cytra::device
