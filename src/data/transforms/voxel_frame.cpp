#include "data/transforms/voxel_frame.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace cytra::data::spatial {
namespace {

bool has_affine(const io::Geometry& geometry) {
  return std::any_of(
      geometry.affine.begin(), geometry.affine.end(), [](double value) { return value != 0; });
}

}  // namespace

void move_voxels(io::Geometry& geometry, const at::Tensor& matrix) {
  // (4,4) for (x,y,z,1), the order of the affine.
  const int64_t dims = matrix.size(0) - 1;
  at::Tensor move = at::eye(4, at::kDouble);
  for (int64_t i = 0; i < dims; ++i) {
    for (int64_t j = 0; j < dims; ++j)
      move[dims - 1 - i][dims - 1 - j] = matrix[i][j].item<double>();
    move[dims - 1 - i][3] = matrix[i][dims].item<double>();
  }
  if (has_affine(geometry)) {
    const at::Tensor affine = at::from_blob(geometry.affine.data(), {3, 4}, at::kDouble);
    affine.copy_(affine.matmul(move));
  }
  auto& spacing = geometry.spacing_um;  // of (z,y,x)
  const std::array<double, 3> before = spacing;
  for (int64_t j = 0; j < 3; ++j) {
    double sum = 0;
    bool known = true;
    for (int64_t i = 0; i < 3; ++i) {
      const double part = move[i][j].item<double>();
      const double side = before[static_cast<std::size_t>(2 - i)];
      known = known && (std::abs(part) < 1e-9 || side > 0);
      sum += part * part * side * side;
    }
    spacing[static_cast<std::size_t>(2 - j)] = known ? std::sqrt(sum) : 0;
  }
}

void move_voxels(io::Geometry& geometry,
                 const std::vector<double>& scale,
                 const std::vector<double>& shift) {
  const auto dims = static_cast<int64_t>(shift.size());
  at::Tensor matrix = at::eye(dims + 1, at::kDouble);
  for (int64_t d = 0; d < dims; ++d) {
    if (!scale.empty()) matrix[d][d] = scale[static_cast<std::size_t>(d)];
    matrix[d][dims] = shift[static_cast<std::size_t>(d)];
  }
  move_voxels(geometry, matrix);
}

std::vector<std::pair<int64_t, bool>> world_axes(const io::Geometry& geometry) {
  at::Tensor columns = at::empty({3, 3}, at::kDouble);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j)
      columns[i][j] = geometry.affine[static_cast<std::size_t>(4 * i + j)];
  }
  columns = columns / columns.norm(2, {0}, /*keepdim=*/true);
  // The rotation nearest to the affine.
  const auto [u, s, vh] = at::linalg_svd(columns, /*full_matrices=*/false);
  at::Tensor rotation = u.matmul(vh);
  // The axis that is surest of its place chooses first.
  const at::Tensor order = rotation.square().neg().amin(0).argsort(/*stable=*/true, 0, false);
  std::vector<std::pair<int64_t, bool>> axes(3);
  for (int64_t n = 0; n < 3; ++n) {
    const int64_t axis = order[n].item<int64_t>();
    const int64_t world = rotation.select(1, axis).abs().argmax().item<int64_t>();
    axes[static_cast<std::size_t>(2 - axis)] = {world, rotation[world][axis].item<double>() < 0};
    rotation[world].zero_();
  }
  return axes;
}

}  // namespace cytra::data::spatial
