#include "inference/sliding_window.h"

#include <cmath>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::inference {
namespace {

void expect_device(const char* name, const std::optional<std::string>& device) {
  if (!device) return;
  try {
    static_cast<void>(c10::Device(*device));
  } catch (const c10::Error&) {
    throw ConfigError(fmt::format(
        "inference_args.{}: expected a device (cpu, cuda, cuda:1), got '{}'", name, *device));
  }
}

}  // namespace

void SlidingWindowOptions::check() const {
  constexpr int64_t kLargestSide = int64_t{1} << 20;
  for (const int64_t side : roi_size) {
    if (side > kLargestSide) {
      throw ConfigError(fmt::format(
          "inference_args.roi_size: {} voxels, expected {} at most", side, kLargestSide));
    }
  }
  for (const double share : overlap) {
    if (!(share >= 0 && share < 1))
      throw ConfigError(fmt::format("inference_args.overlap: expected [0, 1), got {}", share));
  }
  expect_device("sw_device", sw_device);
  expect_device("device", device);
  if (cval != 0 && padding_mode != "constant") {
    throw ConfigError(fmt::format(
        "inference_args.cval={}: padding_mode={} takes its values from the image; leave "
        "cval out, or set padding_mode=constant",
        cval,
        padding_mode));
  }
  for (const double scale : sigma_scale) {
    if (!(scale > 0 && std::isfinite(scale))) {
      throw ConfigError(
          fmt::format("inference_args.sigma_scale: expected a number above 0, got {}", scale));
    }
  }
}

}  // namespace cytra::inference
