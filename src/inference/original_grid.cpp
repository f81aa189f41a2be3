#include "inference/original_grid.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/transforms/resample.h"

namespace cytra::inference {
namespace {

/// Takes a voxel (z,y,x,1) to the world; (4,4) float64.
at::Tensor world_of(const io::Geometry& geometry) {
  at::Tensor matrix = at::eye(4, at::kDouble);
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 4; ++column) {
      const double value = geometry.affine[static_cast<std::size_t>(4 * row + column)];
      matrix[row][column < 3 ? 2 - column : 3] = value;  // x, y, z on file
    }
  }
  return matrix;
}

bool has_affine(const io::Geometry& geometry) {
  return std::any_of(
      geometry.affine.begin(), geometry.affine.end(), [](double v) { return v != 0; });
}

}  // namespace

void to_grid(Result& result, const std::vector<int64_t>& size, const io::Geometry& geometry) {
  if (!has_affine(result.geometry) || !has_affine(geometry))
    throw DataError("nothing tells where its voxels lie; leave predict.original_grid out");
  at::Tensor matrix = at::linalg_solve(world_of(result.geometry), world_of(geometry));
  if (size.size() == 2) {
    if (matrix[0].narrow(0, 1, 2).abs().max().item<double>() > 1e-6)
      throw DataError("the plane that was predicted is tilted against the image's");
    matrix = matrix.narrow(0, 1, 3).narrow(1, 1, 3);
  }
  result.values = data::spatial::sample_affine(result.values,
                                               matrix,
                                               size,
                                               result.is_labels ? "nearest" : "bilinear",
                                               "zeros",
                                               at::kDouble,
                                               /*align_corners=*/true);
  if (result.is_labels) result.values = result.values.to(at::kInt);
  result.geometry = geometry;
}

}  // namespace cytra::inference
