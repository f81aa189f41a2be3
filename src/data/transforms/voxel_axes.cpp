// Source: monai.transforms.SpatialResample.
#include "data/transforms/voxel_axes.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::data::spatial {

at::Tensor axes_of(const io::Geometry& geometry, std::size_t dims) {
  const auto n = static_cast<int64_t>(dims);
  at::Tensor axes = at::eye(n + 1, at::kDouble);
  const auto& affine = geometry.affine;
  const bool known =
      dims == 3 && std::any_of(affine.begin(), affine.end(), [](double v) { return v != 0; });
  for (int64_t i = 0; i < n; ++i) {
    const double spacing_um = geometry.spacing_um[3 - dims + static_cast<std::size_t>(i)];
    if (!(spacing_um > 0)) throw DataError("the distance between its voxels is not known");
    axes[i][i] = spacing_um / 1000;
    for (int64_t j = 0; known && j < 4; ++j)
      axes[i][j < 3 ? 2 - j : 3] = affine[static_cast<std::size_t>(4 * (2 - i) + j)];
  }
  return axes;
}

bool is_identity(const at::Tensor& matrix) {
  constexpr double kTolerance = 1e-3;  // MONAI's AFFINE_TOL
  return (matrix - at::eye(matrix.size(0), at::kDouble)).abs().max().item<double>() <= kTolerance;
}

}  // namespace cytra::data::spatial
