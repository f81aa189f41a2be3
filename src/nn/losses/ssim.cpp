// SSIMLoss: 1 minus the structural similarity of two images. Arguments and values of
// monai.losses.SSIMLoss. With a mask those windows count that hold no other voxel.
// Source: Wang et al., IEEE Trans. Image Processing 13(4), 2004.
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/losses/channels.h"

namespace cytra::nn {
namespace {

struct SSIMLoss : ReducedOptions {
  double data_range = 1, k1 = 0.01, k2 = 0.03;
  std::string kernel_type = "gaussian";
  std::vector<int64_t> win_size{11};
  std::vector<double> kernel_sigma{1.5};
  template <class V>
  void visit(V& v) {
    v("spatial_dims", config::Unused{{"2", "3"}}, "the images say it");
    v("data_range", data_range, "largest value minus smallest", 1e-12, 1e12);
    v("kernel_type", kernel_type, "weights in a window", {"gaussian", "uniform"});
    v("win_size", win_size, "voxels of a window, for all axes or for each", 1, 1001);
    v("kernel_sigma", kernel_sigma, "of the Gaussian, voxels, for all axes or for each", 1e-3, 1e3);
    v("k1", k1, "stability of the luminance", 0, 1);
    v("k2", k2, "stability of the contrast", 0, 1);
    ReducedOptions::visit(v);
  }

  at::Tensor compute(const at::Tensor& prediction,
                     const at::Tensor& target,
                     const at::Tensor& mask) const {
    const at::Tensor x = prediction, y = truth_of(target, prediction, false);
    // One convolution for all means: (5,N,K,...).
    const at::Tensor means = windowed(at::stack({x, y, x * x, y * y, x * y}));
    const at::Tensor mx = means[0], my = means[1];
    const double c1 = std::pow(k1 * data_range, 2), c2 = std::pow(k2 * data_range, 2);
    const at::Tensor contrast =
        (2 * (means[4] - mx * my) + c2) / (means[2] - mx * mx + means[3] - my * my + c2);
    const at::Tensor similarity = (2 * mx * my + c1) / (mx * mx + my * my + c1) * contrast;
    at::Tensor whole;
    // (A sum of weights is 1 up to rounding.)
    if (mask.defined()) whole = windowed(mask.unsqueeze(0))[0].gt(1 - 1e-5).to(mask.scalar_type());
    return reduced(voxel_means(1 - similarity, whole).mean(1));
  }

 private:
  /// Weighted means over the windows that lie inside, one axis after the other: (M,N,K,...).
  at::Tensor windowed(const at::Tensor& images) const {
    const int64_t axes = images.dim() - 3;
    at::Tensor means = images.flatten(0, 2).unsqueeze(1);
    for (int64_t axis = 0; axis < axes; ++axis) {
      std::vector<int64_t> shape(static_cast<std::size_t>(axes) + 2, 1);
      const at::Tensor weights = window(axis, means.size(axis + 2), images.options());
      shape[static_cast<std::size_t>(axis) + 2] = weights.size(0);
      means = axes == 2 ? at::conv2d(means, weights.view(shape))
                        : at::conv3d(means, weights.view(shape));
    }
    std::vector<int64_t> sizes = images.sizes().slice(0, 3).vec();
    for (int64_t axis = 0; axis < axes; ++axis) sizes.push_back(means.size(axis + 2));
    return means.view(sizes);
  }
  at::Tensor window(int64_t axis, int64_t extent, const at::TensorOptions& type) const {
    const auto of_axis = [axis](const auto& list) {
      return list.size() == 1 ? list[0] : list.at(static_cast<std::size_t>(axis));
    };
    const int64_t size = of_axis(win_size);
    if (size > extent) {
      throw ConfigError(
          fmt::format("SSIMLoss.win_size: {} voxels, the image has {}: choose less", size, extent));
    }
    at::Tensor weights = at::ones({size}, type);
    if (kernel_type == "gaussian") {
      const at::Tensor place = at::arange(size, type) - static_cast<double>(size - 1) / 2;
      weights = (-(place / of_axis(kernel_sigma)).square() / 2).exp();
    }
    return weights / weights.sum();
  }
};
CYTRA_REGISTER(Loss, LossOf<SSIMLoss>, "SSIMLoss");

}  // namespace
}  // namespace cytra::nn
