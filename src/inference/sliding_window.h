#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

/// Names and defaults of monai.inferers.SlidingWindowInferer.
struct SlidingWindowOptions {
  std::vector<int64_t> roi_size{64, 64};
  int64_t sw_batch_size = 4;
  std::vector<double> overlap{0.25};
  std::string mode = "gaussian";
  std::vector<double> sigma_scale{0.125};
  std::string padding_mode = "constant";
  double cval = 0;
  bool progress = false;
  template <class V>
  void visit(V& v) {
    v("roi_size",
      roi_size,
      "voxels of the window, per spatial dimension; one number for all; <= 0: the image's size");
    visit_others(v);
  }
  template <class V>
  void visit_others(V& v) {  // all but roi_size
    v("sw_batch_size", sw_batch_size, "windows per forward pass", 1, 1e6);
    v("overlap",
      overlap,
      "share of a window that overlaps the next, in [0, 1); one number or one per dimension");
    v("mode", mode, "weight of a window's voxels where windows overlap", {"constant", "gaussian"});
    v("sigma_scale", sigma_scale, "deviation of the gaussian as a share of the window");
    v("padding_mode",
      padding_mode,
      "how an image smaller than the window is filled up",
      {"constant", "reflect", "replicate", "circular"});
    v("cval", cval, "value of padding_mode=constant");
    v("progress", progress, "show progress over windows");
  }
  void check() const;
};

/// (S,C,roi...) -> (S,K,roi...)
using Predictor = std::function<Tensor(const Tensor& windows)>;
/// Is told after each pass how many windows are done, of how many.
using WindowProgress = std::function<void(int64_t done, int64_t total)>;

/// Predicts an image by overlapping windows and blends them.
/// Shape: image (N,C,[D,]H,W) -> (N,K,[D,]H,W) float32, on the image's device.
/// Follows monai.inferers.sliding_window_inference (placement, padding, importance map); unlike it,
/// sums are float32 for every input type. Throws: ConfigError for options that do not fit the
/// image; DataError when the predictor's output has another spatial size than its windows.
Tensor sliding_window(const Tensor& image,
                      const Predictor& predictor,
                      const SlidingWindowOptions& options,
                      const WindowProgress& progress = {});

/// First index of each window along one dimension. Range: 0 <= overlap < 1.
std::vector<int64_t> window_starts(int64_t size, int64_t roi, double overlap);
/// Weights of a window: ones, or a product of gaussians clamped from below at 1e-3. Shape: roi.
/// sigma_scale: one number or one per dimension. Throws: ConfigError.
Tensor importance_map(const std::vector<int64_t>& roi,
                      const std::string& mode,
                      const std::vector<double>& sigma_scale);

}  // namespace cytra::inference
