// Source: monai.transforms.SpatialResample.
#include "data/sample/voxel_axes.h"

#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/resample.h"

namespace cytra::data::spatial {

at::Tensor axes_of(const io::Geometry& geometry, std::size_t dims) {
  const auto n = static_cast<int64_t>(dims);
  at::Tensor axes = at::eye(n + 1, at::kDouble);
  const auto& affine = geometry.affine;
  const bool known = dims == 3 && geometry.has_affine();
  for (int64_t i = 0; i < n; ++i) {
    const double spacing_um = geometry.spacing_um[3 - dims + static_cast<std::size_t>(i)];
    if (!(spacing_um > 0)) throw DataError("the distance between its voxels is not known");
    axes[i][i] = spacing_um / 1000;
    for (int64_t j = 0; known && j < 4; ++j)
      axes[i][j < 3 ? 2 - j : 3] = affine[static_cast<std::size_t>(4 * (2 - i) + j)];
  }
  return axes;
}

namespace {

/// The matrix from (z,y,x,1) to the world's (right, anterior, superior, 1).
at::Tensor world_of(const io::Geometry& geometry) {
  at::Tensor matrix = at::eye(4, at::kDouble);
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 4; ++column) {
      matrix[row][column < 3 ? 2 - column : 3] =
          geometry.affine[static_cast<std::size_t>(4 * row + column)];
    }
  }
  return matrix;
}

/// Checks that the images overlap: an image at another place would become padding only.
void expect_overlap(at::IntArrayRef given, const at::Tensor& matrix, at::IntArrayRef wanted) {
  for (std::size_t d = 0; d < given.size(); ++d) {
    const at::Tensor row = matrix[static_cast<int64_t>(d)];
    double low = row[std::ssize(given)].item<double>(), high = low;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double reach =
          row[static_cast<int64_t>(i)].item<double>() * static_cast<double>(wanted[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    if (high < -0.5 || low > static_cast<double>(given[d]) - 0.5)
      throw DataError("according to their affines, the two images have no voxel in common");
  }
}

}  // namespace

at::Tensor voxels_between(const io::Geometry& given, const io::Geometry& wanted, std::size_t dims) {
  if (given.is_placed() != wanted.is_placed() || !given.has_affine() || !wanted.has_affine()) {
    const auto spacing_of = [dims](io::Geometry geometry) {
      geometry.affine = {};
      return axes_of(geometry, dims);
    };
    return at::linalg_solve(spacing_of(given), spacing_of(wanted));
  }
  const at::Tensor matrix = at::linalg_solve(world_of(given), world_of(wanted));
  if (dims == 3) return matrix;
  if (matrix[0].narrow(0, 1, 2).abs().max().item<double>() > 1e-3)
    throw DataError("one plane is tilted against the other");
  if (std::abs(matrix[0][3].item<double>()) > 0.5)
    throw DataError("one plane lies above the other");
  return matrix.narrow(0, 1, 3).narrow(1, 1, 3);
}

at::Tensor resample_onto(const at::Tensor& image,
                         const io::Geometry& given,
                         const io::Geometry& wanted,
                         const std::vector<int64_t>& size,
                         const std::string& mode,
                         const std::string& padding_mode,
                         bool align_corners) {
  const at::Tensor matrix = voxels_between(given, wanted, size.size());
  if (image.sizes().slice(1) == at::IntArrayRef(size) && is_identity(matrix)) return image;
  expect_overlap(image.sizes().slice(1), matrix, size);
  return sample_affine(image, matrix, size, mode, padding_mode, at::kDouble, align_corners);
}

bool is_identity(const at::Tensor& matrix) {
  constexpr double kTolerance = 1e-3;  // MONAI's AFFINE_TOL
  return (matrix - at::eye(matrix.size(0), at::kDouble)).abs().max().item<double>() <= kTolerance;
}

}  // namespace cytra::data::spatial
