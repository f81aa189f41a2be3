// SobelGradientsd: slopes along each axis, a channel (of each channel) for each. Source:
// monai.transforms.SobelGradientsd.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct SobelGradientsd : KeyOptions {
  int64_t kernel_size = 3;
  std::vector<int64_t> spatial_axes;
  bool normalize_kernels = true, normalize_gradients = false;
  std::string padding_mode = "reflect";
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("kernel_size", kernel_size, "voxels of the kernel, an odd number", 3, 99);
    v("spatial_axes", spatial_axes, "0: the first (Z or Y); null: all of them");
    v("normalize_kernels", normalize_kernels, "slopes per voxel; false: weights are whole numbers");
    v("normalize_gradients", normalize_gradients, "each slope's range becomes 0 to 1");
    v("padding_mode", padding_mode, "beyond the border", {"zeros", "reflect", "replicate"});
    v("new_key_prefix", config::Unused{{"null"}}, "CopyItemsd keeps the image");
  }
  void check() const {
    if (kernel_size % 2 == 0) throw ConfigError("kernel_size: expected an odd number");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const int64_t dims = image.dim() - 1;
    std::vector<int64_t> axes = spatial_axes;
    for (int64_t d = 0; spatial_axes.empty() && d < dims; ++d) axes.push_back(d);
    std::vector<at::Tensor> slopes;
    for (const int64_t axis : axes) {
      if (axis < -dims || axis >= dims) {
        throw DataError("spatial_axes has " + std::to_string(axis) + ", expected an axis of " +
                        std::to_string(dims));
      }
      slopes.push_back(slope(image, axis < 0 ? axis + dims : axis));
    }
    return at::cat(slopes);
  }

 private:
  at::Tensor slope(const at::Tensor& image, int64_t along) const {
    const int64_t dims = image.dim() - 1, reach = kernel_size / 2;
    at::Tensor slope = image.unsqueeze(1);  // (C,1,...)
    const std::vector<int64_t> widths(static_cast<std::size_t>(2 * dims), reach);
    slope = at::pad(slope, widths, padding_mode == "zeros" ? "constant" : padding_mode);
    for (int64_t d = 0; d < dims; ++d) {
      std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, 1);
      shape[static_cast<std::size_t>(d) + 2] = kernel_size;
      const at::Tensor weights = kernel(d == along).view(shape);
      slope = dims == 2 ? at::conv2d(slope, weights) : at::conv3d(slope, weights);
    }
    if (normalize_gradients) {
      const at::Tensor least = slope.min(), most = slope.max();
      if (!least.equal(most)) slope = slope - least;
      if (const at::Tensor range = slope.max(); range.item<float>() > 0) slope = slope / range;
    }
    return slope.squeeze(1);
  }
  /// The kernel: -1 0 1 or 1 2 1, smoothed by 1 2 1 until it has the wanted length.
  at::Tensor kernel(bool is_slope) const {
    const at::Tensor smooth = at::tensor({1.f, 2.f, 1.f}).div(normalize_kernels ? 4 : 1);
    at::Tensor weights =
        is_slope ? at::tensor({-1.f, 0.f, 1.f}).div(normalize_kernels ? 2 : 1) : smooth;
    for (int64_t size = 3; size < kernel_size; size += 2)
      weights = at::conv1d(weights.view({1, 1, -1}), smooth.view({1, 1, -1}), {}, 1, 2).flatten();
    return weights;
  }
};
CYTRA_REGISTER(Transform, PerKey<SobelGradientsd>, "SobelGradientsd");

}  // namespace
}  // namespace cytra::data
