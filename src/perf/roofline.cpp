#include "perf/roofline.h"

#include <algorithm>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "base/log.h"
#include "device/backend.h"
#include "perf/measure.h"

namespace cytra::perf {
namespace {

constexpr double kEnough = 0.005;                // seconds of a run that tells
constexpr Repeats kShortAndMany{0, 1, 0.2, 16};  // of which the fastest counts
constexpr int64_t kSmallestSide = 256, kLargestSide = 8192, kChannels = 128;
constexpr int64_t kCopied = 128 << 20;  // bytes: beyond the caches

c10::ScalarType type_of(const std::string& arithmetic) {
  if (arithmetic == "bf16") return at::kBFloat16;
  if (arithmetic == "fp16") return at::kHalf;
  return arithmetic == "fp64" ? at::kDouble : at::kFloat;
}

/// Measures larger and larger work, until it takes long enough: `work_of(side)` is work of
/// `flops_of(side)` FLOPs.
template <class WorkOf, class FlopsOf>
double flops_per_s(c10::Device device, const WorkOf& work_of, const FlopsOf& flops_of) {
  for (int64_t side = kSmallestSide;; side *= 2) {
    const std::function<void()> work = work_of(side);
    const double once = measure(work, {1, 1}, device).best_s();
    if (once < kEnough && side < kLargestSide) continue;
    return flops_of(static_cast<double>(side)) /
           std::min(once, measure(work, kShortAndMany, device).best_s());
  }
}

/// The better of a matrix product and a convolution, which two libraries compute: MKL's products
/// reach half of what oneDNN's convolutions do on AMD's processors with AVX-512.
double peak_of(c10::Device device, c10::ScalarType type) {
  const auto options = at::TensorOptions(device).dtype(type);
  const double product = flops_per_s(
      device,
      [&](int64_t side) {
        const at::Tensor a = at::ones({side, side}, options);
        return [a, made = at::empty_like(a)]() mutable { at::mm_out(made, a, a); };
      },
      [](double side) { return 2 * side * side * side; });
  const double convolution = flops_per_s(
      device,
      [&](int64_t side) {
        const auto last = at::MemoryFormat::ChannelsLast;
        const at::Tensor image = at::ones({1, kChannels, side / 8, 32}, options).contiguous(last);
        const at::Tensor weight = at::ones({kChannels, kChannels, 3, 3}, options).contiguous(last);
        return [image, weight] { at::conv2d(image, weight); };
      },
      [](double side) { return 2 * 9 * kChannels * kChannels * (side / 8 - 2) * 30; });
  return std::max(product, convolution);
}

}  // namespace

Roofline measure_roofline(c10::Device device, const std::vector<std::string>& arithmetic) {
  const at::NoGradGuard no_grad;
  const device::Backend& backend = device::backend_of(device);
  const device::Tf32 before = backend.tf32();
  Roofline roofline;
  for (const std::string& name : arithmetic) {
    backend.set_tf32({name == "tf32", name == "tf32"});
    try {
      roofline.flops_per_s[name] = peak_of(device, type_of(name));
    } catch (const c10::Error& error) {
      log::debug("no peak of {}: {}", name, error.what_without_backtrace());
    }
  }
  backend.set_tf32(before);
  try {
    const at::Tensor from = at::ones({kCopied}, at::TensorOptions(device).dtype(at::kByte));
    at::Tensor to = from.clone();
    roofline.bytes_per_s = 2.0 * static_cast<double>(kCopied) /
                           measure([&] { to.copy_(from); }, kShortAndMany, device).best_s();
  } catch (const c10::Error& error) {
    log::debug("no peak of the memory: {}", error.what_without_backtrace());
  }
  return roofline;
}

}  // namespace cytra::perf
