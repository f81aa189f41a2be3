// Source: monai.transforms.{Resample, AffineGrid, utils.create_*},
// monai.networks.layers.AffineTransform of 1.6.1, step by step in the same types:
// a sum in another order may round a point of a label's grid to another voxel.
#include "data/transforms/resample.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::data::spatial {
namespace {

int64_t pad_code(const std::string& mode) {
  return mode == "zeros" ? 0 : mode == "border" ? 1 : 2;
}

at::Tensor grid_sample(const at::Tensor& image,
                       const at::Tensor& points,
                       const std::string& mode,
                       const std::string& padding_mode,
                       bool align_corners) {
  const int64_t interpolation = mode == "nearest" ? 1 : 0;
  return at::grid_sampler(
             image.unsqueeze(0), points, interpolation, pad_code(padding_mode), align_corners)
      .squeeze(0)
      .to(at::kFloat);
}

/// monai.networks.utils.normalize_transform: voxels to [-1, 1].
at::Tensor to_normalized(at::IntArrayRef size, bool align_corners) {
  const auto dims = static_cast<int64_t>(size.size());
  at::Tensor matrix = at::eye(dims + 1, at::kDouble);
  for (int64_t d = 0; d < dims; ++d) {
    const auto n = static_cast<double>(size[static_cast<std::size_t>(d)]);
    matrix[d][d] = align_corners ? 2 / (std::max(n, 2.0) - 1) : 2 / n;
    matrix[d][dims] = align_corners ? -1.0 : 1 / n - 1;
  }
  return matrix;
}

}  // namespace

const std::vector<std::string> kResizeModes{
    "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"};
const std::vector<std::string> kSampleModes{"bilinear", "nearest"};
const std::vector<std::string> kSamplePadModes{"zeros", "border", "reflection"};

at::Tensor resize(const at::Tensor& image,
                  const std::vector<int64_t>& size,
                  const std::string& mode,
                  bool align_corners) {
  const bool is_3d = size.size() == 3;
  const at::Tensor batch = image.unsqueeze(0);
  const auto call = [&]() -> at::Tensor {
    if (mode == "area")
      return is_3d ? at::adaptive_avg_pool3d(batch, size) : at::adaptive_avg_pool2d(batch, size);
    if (mode == "nearest")
      return is_3d ? at::upsample_nearest3d(batch, size) : at::upsample_nearest2d(batch, size);
    if (mode == "nearest-exact") {
      return is_3d ? at::_upsample_nearest_exact3d(batch, size)
                   : at::_upsample_nearest_exact2d(batch, size);
    }
    if (mode == "bicubic") {
      if (is_3d) throw DataError("a stack, expected a plane: bicubic is for planes only");
      return at::upsample_bicubic2d(batch, size, align_corners);
    }
    return is_3d ? at::upsample_trilinear3d(batch, size, align_corners)
                 : at::upsample_bilinear2d(batch, size, align_corners);
  };
  return call().squeeze(0);
}

void check_rotate_order(const char* place, const std::string& order, std::size_t angles) {
  const bool lower = order.find_first_not_of("xyz") == std::string::npos;
  const bool upper = order.find_first_not_of("XYZ") == std::string::npos;
  bool repeats = false;
  for (std::size_t i = 1; i < order.size(); ++i) repeats = repeats || order[i] == order[i - 1];
  if ((lower || upper) && !repeats && order.size() <= 3 && order.size() >= angles && !order.empty())
    return;
  throw ConfigError(
      fmt::format("{}: '{}', expected an order of axes such as XYZ (about the turned axes) or xyz "
                  "(about the fixed ones), one letter per angle",
                  place,
                  order));
}

at::Tensor rotation_matrix(int64_t dims,
                           const std::vector<double>& radians,
                           const std::string& order,
                           c10::ScalarType dtype) {
  at::Tensor matrix = at::eye(dims + 1, dtype);
  const auto turn = [&](std::size_t i, int64_t a, int64_t b) {  // from axis a to axis b
    const at::Tensor angle = at::scalar_tensor(radians[i], dtype);
    at::Tensor one = at::eye(dims + 1, dtype);
    one[a][a] = one[b][b] = angle.cos();
    one[a][b] = -angle.sin();
    one[b][a] = angle.sin();
    return one;
  };
  if (dims == 2) return turn(0, 0, 1);
  for (std::size_t i = 0; i < std::min(radians.size(), order.size()); ++i) {
    const char axis = static_cast<char>(std::tolower(order[i]));
    const at::Tensor one = axis == 'x'   ? turn(i, 1, 2)
                           : axis == 'y' ? turn(i, 2, 0)
                                         : turn(i, 0, 1);
    matrix = axis == order[i] ? one.matmul(matrix) : matrix.matmul(one);
  }
  return matrix;
}

at::Tensor affine_matrix(int64_t dims,
                         const AffineParameters& parameters,
                         const std::string& order) {
  at::Tensor matrix = at::eye(dims + 1, at::kFloat);
  if (!parameters.rotate.empty())
    matrix = matrix.matmul(rotation_matrix(dims, parameters.rotate, order, at::kFloat));
  if (!parameters.shear.empty()) {
    std::size_t next = 0;
    at::Tensor shear = at::eye(dims + 1, at::kFloat);
    for (int64_t i = 0; i < dims; ++i) {
      for (int64_t j = 0; j < dims; ++j) {
        if (i == j || next >= parameters.shear.size()) continue;
        at::Tensor one = at::eye(dims + 1, at::kFloat);
        one[i][j] = parameters.shear[next++];
        shear = one.matmul(shear);
      }
    }
    matrix = matrix.matmul(shear);
  }
  const auto fill = [&](const std::vector<double>& values, bool diagonal) {
    at::Tensor one = at::eye(dims + 1, at::kFloat);
    for (int64_t d = 0; d < std::min<int64_t>(dims, static_cast<int64_t>(values.size())); ++d)
      one[d][diagonal ? d : dims] = values[static_cast<std::size_t>(d)];
    matrix = matrix.matmul(one);
  };
  if (!parameters.translate.empty()) fill(parameters.translate, false);
  if (!parameters.scale.empty()) fill(parameters.scale, true);
  return matrix;
}

at::Tensor identity_grid(const std::vector<int64_t>& size, c10::ScalarType dtype) {
  std::vector<at::Tensor> ranges;
  for (const int64_t n : size) {
    const double half = static_cast<double>(n - 1) / 2;
    ranges.push_back(at::linspace(-half, half, n, dtype));
  }
  std::vector<at::Tensor> axes = at::meshgrid(ranges, "ij");
  axes.push_back(at::ones_like(axes[0]));
  return at::stack(axes);
}

at::Tensor transform_grid(const at::Tensor& matrix, const at::Tensor& grid) {
  return matrix.to(at::kFloat)
      .matmul(grid.to(at::kFloat).reshape({grid.size(0), -1}))
      .reshape(grid.sizes());
}

at::Tensor sample_grid(const at::Tensor& image,
                       const at::Tensor& grid,
                       const std::string& mode,
                       const std::string& padding_mode,
                       c10::ScalarType dtype,
                       bool align_corners) {
  std::vector<at::Tensor> axes;  // x first, as torch wants it
  for (int64_t d = image.dim() - 2; d >= 0; --d) {
    const double half = static_cast<double>(std::max<int64_t>(2, image.size(d + 1)));
    axes.push_back(grid[d].to(dtype) * (2.0 / half));
  }
  const at::Tensor points = at::stack(axes, -1).unsqueeze(0);
  return grid_sample(image.to(dtype), points, mode, padding_mode, align_corners);
}

at::Tensor about_centers(const at::Tensor& matrix, at::IntArrayRef from, at::IntArrayRef to) {
  const auto dims = static_cast<int64_t>(from.size());
  const auto move = [&](at::IntArrayRef size, double sign) {
    at::Tensor result = at::eye(dims + 1, at::kDouble);
    for (int64_t d = 0; d < dims; ++d)
      result[d][dims] = sign * static_cast<double>(size[static_cast<std::size_t>(d)] - 1) / 2;
    return result;
  };
  return move(from, 1).matmul(matrix.to(at::kDouble)).matmul(move(to, -1));
}

at::Tensor sample_affine(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         const std::string& mode,
                         const std::string& padding_mode,
                         c10::ScalarType dtype,
                         bool align_corners) {
  const int64_t dims = image.dim() - 1;
  const at::Tensor source = to_normalized(image.sizes().slice(1), align_corners).to(dtype);
  const at::Tensor target = to_normalized(size, align_corners).to(dtype);
  at::Tensor theta = source.matmul(matrix.to(dtype)).matmul(at::linalg_inv(target));
  // Rows and columns to x first.
  theta = at::cat({theta.slice(0, 0, dims).flip(0), theta.slice(0, dims)}, 0);
  theta = at::cat({theta.slice(1, 0, dims).flip(1), theta.slice(1, dims)}, 1);
  std::vector<int64_t> shape{1, image.size(0)};
  shape.insert(shape.end(), size.begin(), size.end());
  const at::Tensor points =
      at::affine_grid_generator(theta.slice(0, 0, dims).unsqueeze(0), shape, align_corners);
  return grid_sample(image.to(dtype), points, mode, padding_mode, align_corners);
}

}  // namespace cytra::data::spatial
