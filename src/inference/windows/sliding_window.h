#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/tensor_fwd.h"
#include "config/node.h"

namespace cytra::inference {

/// The options of windows, with names and defaults of monai.inferers.SlidingWindowInferer.
struct SlidingWindowOptions {
  std::vector<int64_t> roi_size{64, 64};
  int64_t sw_batch_size = 4;
  std::vector<double> overlap{0.25};
  std::string mode = "gaussian";
  std::vector<double> sigma_scale{0.125};
  std::string spacing = "monai";
  std::string padding_mode = "constant";
  double cval = 0;
  std::optional<int64_t> spatial_dim;
  std::optional<std::string> sw_device, device;
  std::optional<int64_t> buffer_steps;
  int64_t buffer_dim = -1;
  bool progress = false;
  Tensor roi_weight_map;  // C++ only: weights of a window, >= 0, in place of `mode`; shape: roi
  bool channels_last = false;  // C++ only: layout of the windows
  /// C++ only: where predict_slabs() keeps the rows and sums of windows on a CPU, in files without
  /// names; "": in memory.
  std::string slab_folder;
  /// C++ only, of a network on a grid (Decoder::grid()): windows begin at multiples of it, one
  /// number per dimension, and images are filled up to multiples behind their end, as StarDist's.
  std::vector<int64_t> unit;
  void visit(auto& v) {
    std::vector<std::optional<int64_t>> sides(roi_size.begin(), roi_size.end());
    v("roi_size",
      sides,
      "voxels of the window, per spatial dimension; one number for all; null, <= 0: the image's "
      "size");
    roi_size.clear();
    for (const std::optional<int64_t>& side : sides) roi_size.push_back(side.value_or(0));
    visit_others(v);
  }
  void visit_others(auto& v) {  // all but roi_size
    v("sw_batch_size", sw_batch_size, "windows per forward pass", 1, 1e6);
    v("overlap",
      overlap,
      "share of a window that overlaps the next, in [0, 1); one number or one per dimension");
    v("mode",
      mode,
      "weight of a window's voxels where windows overlap; nnunet: its gaussian; cellpose: its "
      "taper",
      {"constant", "gaussian", "nnunet", "cellpose"});
    v("sigma_scale", sigma_scale, "deviation of the gaussian as a share of the window");
    v("spacing",
      spacing,
      "monai: steps of (1 - overlap) windows, the last one shifted back; even: nnU-Net's; cellpose",
      {"monai", "even", "cellpose"});
    v("padding_mode",
      padding_mode,
      "how an image smaller than the window is filled up",
      {"constant", "reflect", "replicate", "circular"});
    v("cval", cval, "value of padding_mode=constant");
    v("spatial_dim",
      spatial_dim,
      "a 2D model goes slice by slice along this dimension of a volume; roi_size has the other two",
      0,
      2);
    v("sw_device", sw_device, "where windows are predicted; null: where the image is");
    v("device", device, "where predictions are summed; null: where the image is");
    v("buffer_steps",
      buffer_steps,
      "an option of MONAI: accepted, but the result is the same without it",
      0,
      1e9);
    v("buffer_dim", buffer_dim, "an option of MONAI, like buffer_steps", -3, 2);
    v("progress", progress, "show progress over windows");
  }
  void check() const;
};

/// `inference_args` of predict: changes to the checkpoint's options of windows.
struct WindowChanges : SlidingWindowOptions {
  config::Node given_roi;
  void visit(auto& v) {
    v("roi_size",
      given_roi,
      "AUTO: twice the training patch where memory allows, no larger than the image; else voxels "
      "of the window, per spatial dimension, one number for all; <= 0: the image's size");
    visit_others(v);
  }
  static bool is_auto(const config::Node& roi);
  void check();
};

/// A model of one output: (S,C,roi...) -> (S,K,roi...).
using Network = std::function<Tensor(const Tensor& windows)>;
/// A model: (S,C,roi...) -> its outputs, each (S,K,...), also of other resolutions.
using Forward = std::function<std::vector<Tensor>(const Tensor& windows)>;
/// Called after each pass with the number of finished windows, and of all.
using WindowProgress = std::function<void(int64_t done, int64_t total)>;

/// Predicts an image by overlapping windows and blends them.
/// Shape: image (N,C,[D,][H,]W), any type -> (N,K,[D,][H,]W) float32, on options.device.
/// The model's windows are float32, or of the image's floating type; their memory is reused for
/// the next ones unless the model keeps it. Follows monai.inferers.sliding_window_inference
/// (placement, padding, importance map); unlike it, sums are float32 for every input type. Throws:
/// ConfigError for options that do not fit the image; DataError when the model's output has
/// another spatial size than its windows.
Tensor sliding_window(const Tensor& image,
                      const Network& model,
                      const SlidingWindowOptions& options,
                      const WindowProgress& progress = {});
/// Predicts all outputs. An output whose windows are m times as large as the model's, per
/// dimension, gives an image m times as large (rounded down).
std::vector<Tensor> sliding_window(const Tensor& image,
                                   const Forward& model,
                                   const SlidingWindowOptions& options,
                                   const WindowProgress& progress = {});

}  // namespace cytra::inference
