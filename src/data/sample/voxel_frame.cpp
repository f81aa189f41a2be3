#include "data/sample/voxel_frame.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cytra::data::spatial {
namespace {

/// Three rows of four, for (x,y,z,1): the order of the affine.
using Move = std::array<std::array<double, 4>, 3>;

// Works without tensors, as it is called for every crop of a training run.
void follow_move(io::Geometry& geometry, const Move& move) {
  for (auto* affine : {&geometry.affine, &geometry.qform_affine, &geometry.field}) {
    const auto before = *affine;
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < 4; ++column) {
        double sum = column == 3 ? before[4 * row + 3] : 0;
        for (std::size_t i = 0; i < 3; ++i) sum += before[4 * row + i] * move[i][column];
        (*affine)[4 * row + column] = sum;
      }
    }
  }
  const std::array<double, 3> side = geometry.spacing_um;  // of (z,y,x)
  for (std::size_t column = 0; column < 3; ++column) {
    double sum = 0;
    bool known = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const double part = move[i][column] * side[2 - i];
      known = known && (std::abs(move[i][column]) < 1e-9 || side[2 - i] > 0);
      sum += part * part;
    }
    geometry.spacing_um[2 - column] = known ? std::sqrt(sum) : 0;
  }
}

Move identity() {
  Move move{};
  for (std::size_t i = 0; i < 3; ++i) move[i][i] = 1;
  return move;
}

}  // namespace

void move_voxels(io::Geometry& geometry, const at::Tensor& matrix) {
  const auto dims = static_cast<std::size_t>(matrix.size(0) - 1);
  const at::Tensor rows = matrix.contiguous();
  const auto* value = rows.const_data_ptr<double>();
  Move move = identity();
  for (std::size_t i = 0; i < dims; ++i, value += dims + 1) {
    for (std::size_t j = 0; j < dims; ++j) move[dims - 1 - i][dims - 1 - j] = value[j];
    move[dims - 1 - i][3] = value[dims];
  }
  follow_move(geometry, move);
}

void move_voxels(io::Geometry& geometry,
                 const std::vector<double>& scale,
                 const std::vector<double>& shift) {
  const std::size_t dims = shift.size();
  Move move = identity();
  for (std::size_t d = 0; d < dims; ++d) {
    if (!scale.empty()) move[dims - 1 - d][dims - 1 - d] = scale[d];
    move[dims - 1 - d][3] = shift[d];
  }
  follow_move(geometry, move);
}

std::vector<std::pair<int64_t, bool>> world_axes(const io::Geometry& geometry) {
  at::Tensor columns = at::empty({3, 3}, at::kDouble);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j)
      columns[i][j] = geometry.affine[static_cast<std::size_t>(4 * i + j)];
  }
  columns = columns / columns.norm(2, {0}, /*keepdim=*/true);
  // The rotation that is nearest to the affine.
  const auto [u, s, vh] = at::linalg_svd(columns, /*full_matrices=*/false);
  at::Tensor rotation = u.matmul(vh);
  // The axis with the clearest direction chooses first.
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
