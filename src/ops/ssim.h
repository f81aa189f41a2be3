#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// The window of SSIM and its constants, by MONAI's names: of the metric and of the loss.
struct SsimOptions {
  std::string kernel_type = "gaussian";
  std::vector<int64_t> win_size{11};
  std::vector<double> kernel_sigma{1.5};
  double k1 = 0.01, k2 = 0.03;
  void visit(auto& v) {
    v("kernel_type", kernel_type, "weights of the window", {"gaussian", "uniform"});
    v("win_size", win_size, "side of the window, one or per spatial dimension", 1, 1e6);
    v("kernel_sigma",
      kernel_sigma,
      "deviation of the Gaussian, one or per spatial dimension",
      1e-6,
      1e6);
    v("k1", k1, "steadies the means' share", 0, 1e6);
    v("k2", k2, "steadies the deviations' share", 0, 1e6);
  }
};

/// Structural similarity at each place where the window is within the image; with gradients.
/// Shape: prediction, truth (N,C,[D,]H,W) float32 or double; data_range: the values' range, which
/// broadcasts with them -> (N,C,[D-d+1,]H-h+1,W-w+1). Throws: DataError for an image smaller than
/// the window, and another number of sizes than axes.
/// Source: Wang et al. 2004; monai.metrics.regression.compute_ssim_and_cs.
at::Tensor ssim(const at::Tensor& prediction,
                const at::Tensor& truth,
                const at::Tensor& data_range,
                const SsimOptions& options = {});

/// The sides of the SSIM window, for each of `dims` spatial dimensions. Throws: as ssim().
std::vector<int64_t> ssim_window(const SsimOptions& options, int64_t dims);

}  // namespace cytra::ops
