// SSIMLoss: 1 minus the structural similarity of two images. Arguments and values of
// monai.losses.SSIMLoss. With a mask, only windows count whose voxels are all in the mask.
// Source: Wang et al., IEEE Trans. Image Processing 13(4), 2004.
#include "ops/ssim.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/losses/channels.h"

namespace cytra::nn {
namespace {

struct SSIMLoss : ReducedOptions, ops::SsimOptions {
  static constexpr const char* kPurpose = kValues.what;
  double data_range = 1;
  void visit(auto& v) {
    v("spatial_dims", config::Unused{{"2", "3"}}, "the images say it");
    v("data_range", data_range, "largest value minus smallest", 1e-12, 1e12);
    v("kernel_type", kernel_type, "weights in a window", {"gaussian", "uniform"});
    v("win_size", win_size, "voxels of a window, for all axes or for each", 1, 1001);
    v("kernel_sigma",
      kernel_sigma,
      "deviation of the Gaussian in voxels, for all axes or for each",
      1e-3,
      1e3);
    v("k1", k1, "stability of the luminance", 0, 1);
    v("k2", k2, "stability of the contrast", 0, 1);
    ReducedOptions::visit(v);
  }

  at::Tensor compute(const LossInput& in) const {
    const auto& [prediction, target, mask] = in;
    const std::vector<int64_t> window = ops::ssim_window(*this, prediction.dim() - 2);
    for (std::size_t d = 0; d < window.size(); ++d) {
      const int64_t extent = prediction.size(static_cast<int64_t>(d) + 2);
      if (window[d] > extent) {
        throw ConfigError(
            "SSIMLoss.win_size: {} voxels, the image has {}: choose less", window[d], extent);
      }
    }
    const at::Tensor similarity =
        ops::ssim(prediction, truth_of(in), at::full({}, data_range, prediction.options()), *this);
    at::Tensor whole;
    if (mask.defined()) {
      const at::Tensor others =
          mask.to(prediction.scalar_type()).eq(0).to(prediction.scalar_type());
      const at::Tensor any = window.size() == 2 ? at::max_pool2d(others, window, 1)
                                                : at::max_pool3d(others, window, 1);
      whole = any.eq(0).to(mask.scalar_type());
    }
    return reduced(voxel_means(1 - similarity, whole).mean(1));
  }
};
CYTRA_REGISTER(Loss, LossOf<SSIMLoss>, "SSIMLoss");

}  // namespace
}  // namespace cytra::nn
