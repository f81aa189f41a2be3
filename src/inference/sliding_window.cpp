#include "inference/sliding_window.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::inference {

void SlidingWindowOptions::check() const {
  for (const double share : overlap) {
    if (!(share >= 0 && share < 1))
      throw ConfigError(fmt::format("inference_args.overlap: expected [0, 1), got {}", share));
  }
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
