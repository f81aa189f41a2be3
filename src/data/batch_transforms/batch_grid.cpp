#include "data/batch_transforms/batch_grid.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/batch_transforms/keyed_random.h"
#include "data/sample/gaussian_filter.h"
#include "data/sample/resample.h"

namespace cytra::data::spatial {

c10::ScalarType grid_type(const std::string& mode) {
  return mode == "nearest" ? at::kDouble : at::kFloat;
}

at::Tensor transform_points(const at::Tensor& matrices, const std::vector<at::Tensor>& points) {
  const auto dims = std::ssize(points);
  std::vector<int64_t> shape(points.size() + 1, 1);
  shape[0] = matrices.size(0);
  std::vector<at::Tensor> axes;
  for (int64_t row = 0; row < dims; ++row) {
    const auto entry = [&](int64_t column) {
      return matrices.select(1, row).select(1, column).reshape(shape);
    };
    at::Tensor sum = entry(dims);
    for (int64_t c = 0; c < dims; ++c) sum = sum + entry(c) * points[static_cast<std::size_t>(c)];
    axes.push_back(sum);
  }
  return at::stack(axes, 1);
}

std::vector<at::Tensor> voxel_points(at::IntArrayRef size, const at::TensorOptions& options) {
  std::vector<at::Tensor> points;
  for (std::size_t d = 0; d < size.size(); ++d) {
    std::vector<int64_t> shape(size.size() + 1, 1);
    shape[d + 1] = size[d];
    const double half = static_cast<double>(size[d] - 1) / 2;
    points.push_back(at::arange(size[d], options).sub_(half).reshape(shape));
  }
  return points;
}

at::Tensor sample_batch(const at::Tensor& images,
                        const at::Tensor& grid,
                        const std::string& mode,
                        const std::string& padding_mode) {
  std::vector<at::Tensor> axes;  // x first, as torch expects it
  for (int64_t d = grid.size(1) - 1; d >= 0; --d) {
    const auto n = static_cast<double>(std::max<int64_t>(2, images.size(d + 2)));
    axes.push_back(grid.select(1, d) * (2 / n));
  }
  return sample_points(images, at::stack(axes, -1), mode, padding_mode, /*align_corners=*/false);
}

at::Tensor filter_batch(const at::Tensor& images,
                        const std::vector<std::vector<double>>& sigmas,
                        const std::string& approx,
                        double truncated) {
  const int64_t n = images.size(0), channels = images.size(1), dims = images.dim() - 2;
  at::Tensor result = images.flatten(0, 1).unsqueeze(0);
  for (int64_t d = 0; d < dims; ++d) {
    std::vector<std::vector<float>> kernels;
    std::size_t length = 1;
    for (const auto& sigma : sigmas) {
      const double s = sigma[static_cast<std::size_t>(d)];
      kernels.push_back(s == 0 ? std::vector<float>{1} : gaussian_kernel(s, approx, truncated));
      length = std::max(length, kernels.back().size());
    }
    at::Tensor taps = at::zeros({n, static_cast<int64_t>(length)}, at::kFloat);
    auto* row = taps.mutable_data_ptr<float>();
    for (const auto& kernel : kernels) {
      std::ranges::copy(kernel, row + (length - kernel.size()) / 2);
      row += length;
    }
    std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, 1);
    shape[0] = n * channels;
    shape[static_cast<std::size_t>(d) + 2] = static_cast<int64_t>(length);
    std::vector<int64_t> padding(static_cast<std::size_t>(dims), 0);
    padding[static_cast<std::size_t>(d)] = static_cast<int64_t>(length / 2);
    const std::vector<int64_t> ones(static_cast<std::size_t>(dims), 1);
    const at::Tensor weight = to_device(taps.to(images.scalar_type()), images.device())
                                  .repeat_interleave(channels, 0)
                                  .reshape(shape);
    result = dims == 3 ? at::conv3d(result, weight, {}, ones, padding, ones, n * channels)
                       : at::conv2d(result, weight, {}, ones, padding, ones, n * channels);
  }
  return result.squeeze(0).reshape(images.sizes());
}

}  // namespace cytra::data::spatial
