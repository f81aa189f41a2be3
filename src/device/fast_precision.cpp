#include "device/fast_precision.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <ATen/Context.h>
#include <fmt/format.h>

#include "base/log.h"
#include "device/cuda_driver.h"
#include "device/precision.h"

namespace cytra::device {
namespace {

constexpr int kAmpere = 80;  // the first with bfloat16 and TF32

int capability_of(c10::Device gpu) {
  return cuda_gpu(gpu.has_index() ? gpu.index() : 0).capability;
}

/// AVX512_BF16 or AMX-BF16; AMX-FP16.
bool cpu_has(c10::ScalarType type) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool has_amx_bf16 = (d >> 22 & 1) != 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return type != c10::kHalf && has_amx_bf16;
  return type == c10::kHalf ? (a >> 21 & 1) != 0 : has_amx_bf16 || (a >> 5 & 1) != 0;
#else
  return type != c10::kHalf;
#endif
}

}  // namespace

std::string slow_precision(const std::string& precision, c10::Device device) {
  const c10::ScalarType type = precision_of(precision).compute;
  if (type != c10::kHalf && type != c10::kBFloat16) return "";
  const std::string name = type == c10::kHalf ? "float16" : "bfloat16";
  if (device.is_cpu())
    return cpu_has(type) ? "" : fmt::format("this CPU has no products in {}", name);
  if (type == c10::kHalf) return "";
  const CudaGpu gpu = cuda_gpu(device.has_index() ? device.index() : 0);
  if (gpu.capability == 0 || gpu.capability >= kAmpere) return "";
  return fmt::format("{} (compute capability {}.{}) has no products in bfloat16",
                     gpu.name,
                     gpu.capability / 10,
                     gpu.capability % 10);
}

void warn_of_slow_precision(const std::string& precision, c10::Device device) {
  const std::string why = slow_precision(precision, device);
  if (why.empty()) return;
  log::warn("trainer.precision={}: slow, {}; trainer.precision={} is faster here",
            precision,
            why,
            device.is_cuda() ? "16-mixed" : "32");
}

bool uses_tensor_cores(const std::string& precision, c10::Device device) {
  if (!device.is_cuda()) return false;
  const c10::ScalarType compute = precision_of(precision).compute;
  if (compute != c10::kFloat) return compute == c10::kHalf || compute == c10::kBFloat16;
  return at::globalContext().allowTF32CuDNN(at::Float32Op::CONV) &&
         capability_of(device) >= kAmpere;
}

std::string precision_to_run(const std::optional<std::string>& asked,
                             const std::string& trained,
                             c10::Device device) {
  if (asked) {
    warn_of_slow_precision(*asked, device);
    return *asked;
  }
  const c10::ScalarType type = precision_of(trained).compute;
  if (type != c10::kHalf && type != c10::kBFloat16) return "32";
  const std::string why = slow_precision(trained, device);
  if (why.empty()) {
    log::info("precision: {}, that of the training; trainer.precision=32 for float32", trained);
    return trained;
  }
  log::info("precision: 32; the training had {}, but {}", trained, why);
  return "32";
}

}  // namespace cytra::device
