// Source: monai.transforms.{Resample, AffineGrid, utils.create_*},
// monai.networks.layers.AffineTransform of 1.6.1. All matrices and grids are float64: the rounding
// of float32 depends on the processor, and could move a label's voxel.
#include "data/sample/resample.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/pad_crop.h"
#include "data/sample/sample_voxels.h"
#include "data/sample/spline.h"

namespace cytra::data::spatial {
namespace {

int64_t pad_code(const std::string& mode) {
  return mode == "zeros" ? 0 : mode == "border" ? 1 : 2;
}

constexpr double kSteps = 1 << 20;  // of a voxel

/// Mirrors x at low and high until it lies between them.
at::Tensor reflected(const at::Tensor& x, double low, double high) {
  const double span = high - low;
  if (span == 0) return at::full_like(x, low);
  const at::Tensor within = (x - low).abs_().fmod_(2 * span);
  return at::minimum(within, 2 * span - within).add_(low);
}

}  // namespace

double snapped(double x) {
  return std::nearbyint(x * kSteps) / kSteps;
}

at::Tensor sample_nearest(const at::Tensor& images,
                          const at::Tensor& points,
                          const std::string& padding_mode,
                          bool align_corners) {
  const int64_t rows = images.size(0), channels = images.size(1), dims = images.dim() - 2;
  at::Tensor index, outside;
  int64_t stride = 1;
  for (int64_t d = 0; d < dims; ++d) {  // x first
    const int64_t n = images.size(-1 - d);
    const auto length = static_cast<double>(n);
    at::Tensor place = points.select(-1, d) + 1;
    align_corners ? place.mul_((length - 1) / 2) : place.mul_(length).sub_(1).div_(2);
    if (padding_mode == "reflection")
      place =
          align_corners ? reflected(place, 0, length - 1) : reflected(place, -0.5, length - 0.5);
    // As snapped(), then half to even.
    at::Tensor voxel = place.mul_(kSteps).round_().div_(kSteps).round_().to(at::kLong);
    if (padding_mode == "zeros") {
      const at::Tensor beyond = voxel.lt(0).logical_or_(voxel.ge(n));
      outside = outside.defined() ? outside.logical_or_(beyond) : beyond;
    }
    voxel.clamp_(0, n - 1).mul_(stride);
    index = index.defined() ? index.add_(voxel) : voxel;
    stride *= n;
  }
  std::vector<int64_t> shape = index.sizes().vec();
  shape.insert(shape.begin() + 1, channels);
  const at::Tensor taken = images.reshape({rows, channels, -1})
                               .gather(2, index.flatten(1).unsqueeze(1).expand({-1, channels, -1}))
                               .reshape(shape);
  return outside.defined() ? taken.masked_fill(outside.unsqueeze(1), 0) : taken;
}

at::Tensor sample_points(const at::Tensor& images,
                         const at::Tensor& points,
                         const std::string& mode,
                         const std::string& padding_mode,
                         bool align_corners) {
  if (mode == "nearest") return sample_nearest(images, points, padding_mode, align_corners);
  return at::grid_sampler(
      images.to(points.scalar_type()), points, 0, pad_code(padding_mode), align_corners);
}

const std::vector<std::string> kResizeModes{
    "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"};
const std::vector<std::string> kSampleModes{"bilinear", "nearest"};
const std::vector<std::string> kAffineModes{"bilinear", "nearest", "0", "1", "2", "3", "4", "5"};
const std::vector<std::string> kSamplePadModes{"zeros", "border", "reflection"};

at::Tensor resize(const at::Tensor& image,
                  const std::vector<int64_t>& size,
                  const std::string& mode,
                  bool align_corners) {
  check_made_size(size);
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
      "{}: '{}', expected an order of axes such as XYZ (about the turned axes) or xyz (about the "
      "fixed ones), one letter per angle",
      place,
      order);
}

at::Tensor rotation_matrix(int64_t dims,
                           const std::vector<double>& radians,
                           const std::string& order) {
  at::Tensor matrix = at::eye(dims + 1, at::kDouble);
  const auto turn = [&](std::size_t i, int64_t a, int64_t b) {  // from axis a to axis b
    at::Tensor one = at::eye(dims + 1, at::kDouble);
    one[a][a] = one[b][b] = std::cos(radians[i]);
    one[a][b] = -std::sin(radians[i]);
    one[b][a] = std::sin(radians[i]);
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
  at::Tensor matrix = at::eye(dims + 1, at::kDouble);
  if (!parameters.rotate.empty())
    matrix = matrix.matmul(rotation_matrix(dims, parameters.rotate, order));
  if (!parameters.shear.empty()) {
    std::size_t next = 0;
    at::Tensor shear = at::eye(dims + 1, at::kDouble);
    for (int64_t i = 0; i < dims; ++i) {
      for (int64_t j = 0; j < dims; ++j) {
        if (i == j || next >= parameters.shear.size()) continue;
        at::Tensor one = at::eye(dims + 1, at::kDouble);
        one[i][j] = parameters.shear[next++];
        shear = one.matmul(shear);
      }
    }
    matrix = matrix.matmul(shear);
  }
  const auto fill = [&](const std::vector<double>& values, bool diagonal) {
    at::Tensor one = at::eye(dims + 1, at::kDouble);
    for (int64_t d = 0; d < std::min<int64_t>(dims, std::ssize(values)); ++d)
      one[d][diagonal ? d : dims] = values[static_cast<std::size_t>(d)];
    matrix = matrix.matmul(one);
  };
  if (!parameters.translate.empty()) fill(parameters.translate, false);
  if (!parameters.scale.empty()) fill(parameters.scale, true);
  return matrix;
}

at::Tensor identity_grid(const std::vector<int64_t>& size) {
  check_made_size(size);
  std::vector<at::Tensor> ranges;
  for (const int64_t n : size)
    ranges.push_back(at::arange(n, at::kDouble).sub_(static_cast<double>(n - 1) / 2));
  std::vector<at::Tensor> axes = at::meshgrid(ranges, "ij");
  axes.push_back(at::ones_like(axes[0]));
  return at::stack(axes);
}

at::Tensor transform_grid(const at::Tensor& matrix, const at::Tensor& grid) {
  return matrix.to(at::kDouble)
      .matmul(grid.to(at::kDouble).reshape({grid.size(0), -1}))
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
    axes.push_back(grid[d].to(mode == "nearest" ? at::kDouble : dtype) * (2.0 / half));
  }
  const at::Tensor points = at::stack(axes, -1).unsqueeze(0);
  return sample_points(image.unsqueeze(0), points, mode, padding_mode, align_corners)
      .squeeze(0)
      .to(at::kFloat);
}

at::Tensor about_centers(const at::Tensor& matrix, at::IntArrayRef from, at::IntArrayRef to) {
  const auto dims = std::ssize(from);
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
                         bool align_corners,
                         const std::string& folder) {
  check_made_size(size);
  if (mode.size() == 1)
    return sample_spline(image, matrix, size, mode[0] - '0', padding_mode, align_corners, folder);
  const int64_t dims = image.dim() - 1;
  at::Tensor from = matrix;
  for (int64_t d = 0; align_corners && d < dims; ++d) {
    // An axis of one voxel has no corners: torch takes the image's only one, and the middle
    // between the result's first two.
    if (image.size(d + 1) == 1) {
      from = from.clone();
      from.select(0, d).zero_();
    }
    if (size[static_cast<std::size_t>(d)] > 1) continue;
    from = from.clone();
    from.select(1, dims).add_(from.select(1, d), 0.5);
  }
  const Between between = mode == "nearest" ? Between::nearest_even : Between::linear;
  const at::Tensor values = image.to(at::kFloat);
  std::vector<AxisPlaces> places = places_along_axes(from, size);
  if (places.empty())
    return sample_at_matrix(values, from, size, between, padding_mode, align_corners, folder);
  for (AxisPlaces& axis : places) axis.between = between;
  return sample_along_axes(values, places, padding_mode, align_corners, dtype, folder);
}

}  // namespace cytra::data::spatial
