#pragma once
// The places and weights of windows.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/windows/sliding_window.h"

namespace cytra::ops {
struct WindowGrid;  // ops/windows/sums.h
}

namespace cytra::inference {

/// The bytes of rows that are read into their place, or finished, at once.
constexpr double kBytesAtOnce = 1 << 25;

/// The layout of windows for an image: one number per spatial dimension.
struct WindowLayout {
  std::vector<int64_t> size, padded, roi,
      before;                                // of the image; with padding; of a window; in front
  std::vector<std::vector<int64_t>> starts;  // in the padded image
  int64_t slice_dim = -1;                    // that the model does not see (spatial_dim)
  int64_t windows() const;
};
/// Computes the layout. Throws: ConfigError for options that do not fit an image of `size`
/// ([D,][H,]W).
WindowLayout layout_windows(const std::vector<int64_t>& size, const SlidingWindowOptions& options);

/// Makes the grid of an output whose windows have `output_roi`, for the passes of ops/. Source:
/// monai.inferers.sliding_window_inference; the map is resized by nearest-exact.
ops::WindowGrid make_grid(const WindowLayout& layout,
                          const SlidingWindowOptions& options,
                          const std::vector<int64_t>& output_roi);

/// The first index of each window along one dimension. Range: 0 <= overlap < 1. `spacing`: monai,
/// even or cellpose.
std::vector<int64_t> window_starts(int64_t size,
                                   int64_t roi,
                                   double overlap,
                                   const std::string& spacing = "monai");
/// The weights of a window: ones, a product of gaussians clamped from below at 1e-3 or as nnU-Net
/// has them, or Cellpose's taper. Shape: roi. sigma_scale: one number or one per dimension. Throws:
/// ConfigError.
Tensor importance_map(const std::vector<int64_t>& roi,
                      const std::string& mode,
                      const std::vector<double>& sigma_scale);

}  // namespace cytra::inference
