#include "perf/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "base/log.h"
#include "perf/device.h"

namespace cytra::perf {
namespace {

constexpr double kEnough = 0.03;  // seconds of one run
constexpr int kRuns = 4;
constexpr int64_t kSmallestSide = 256, kLargestSide = 8192;
constexpr int64_t kCopied = 256 << 20;  // bytes: beyond any cache

double seconds_of(const std::function<void()>& work, c10::Device device) {
  synchronize(device);
  const auto begin = std::chrono::steady_clock::now();
  work();
  synchronize(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double fastest_of(const std::function<void()>& work, c10::Device device) {
  double fastest = seconds_of(work, device);
  for (int i = 1; i < kRuns; ++i) fastest = std::min(fastest, seconds_of(work, device));
  return fastest;
}

c10::ScalarType type_of(const std::string& arithmetic) {
  if (arithmetic == "bf16") return at::kBFloat16;
  if (arithmetic == "fp16") return at::kHalf;
  return arithmetic == "fp64" ? at::kDouble : at::kFloat;
}

double product_flops_per_s(c10::Device device, c10::ScalarType type) {
  for (int64_t side = kSmallestSide;; side *= 2) {
    const at::Tensor a = at::ones({side, side}, at::TensorOptions(device).dtype(type));
    at::Tensor product = at::mm(a, a);  // warms up
    const auto work = [&] { at::mm_out(product, a, a); };
    const double once = seconds_of(work, device);
    if (once < kEnough && side < kLargestSide) continue;
    const auto values = static_cast<double>(side);
    return 2 * values * values * values / std::min(once, fastest_of(work, device));
  }
}

}  // namespace

double Roofline::limit(const std::string& arithmetic, double intensity) const {
  const auto peak = flops_per_s.find(arithmetic);
  const double by_memory = intensity * bytes_per_s;
  return peak == flops_per_s.end() ? by_memory : std::min(peak->second, by_memory);
}

Roofline measure_roofline(c10::Device device, const std::vector<std::string>& arithmetic) {
  const at::NoGradGuard no_grad;
  at::Context& context = at::globalContext();
  const bool had_tf32 = context.allowTF32CuBLAS();
  Roofline roofline;
  for (const std::string& name : arithmetic) {
    if (device.is_cuda()) context.setAllowTF32CuBLAS(name == "tf32");
    try {
      roofline.flops_per_s[name] = product_flops_per_s(device, type_of(name));
    } catch (const c10::Error& error) {
      log::debug("no peak of {}: {}", name, error.what_without_backtrace());
    }
  }
  if (device.is_cuda()) context.setAllowTF32CuBLAS(had_tf32);
  try {
    const at::Tensor from = at::ones({kCopied}, at::TensorOptions(device).dtype(at::kByte));
    at::Tensor to = from.clone();
    roofline.bytes_per_s =
        2.0 * static_cast<double>(kCopied) / fastest_of([&] { to.copy_(from); }, device);
  } catch (const c10::Error& error) {
    log::debug("no peak of the memory: {}", error.what_without_backtrace());
  }
  return roofline;
}

}  // namespace cytra::perf
