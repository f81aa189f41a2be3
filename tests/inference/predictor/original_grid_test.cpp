// Results in the voxels of the file: rows beside the whole, and both beside plain sampling.
#include "inference/predictor/original_grid.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/sample/resample.h"
#include "data/sample/turn.h"
#include "data/sample/voxel_axes.h"
#include "data/sample/voxel_frame.h"

namespace cytra::inference {
namespace {

/// A file's voxels, and a model's that are turned, mirrored, scaled and shifted against them.
ToFileGrid some_grids(bool is_turned) {
  ToFileGrid grid;
  grid.from = {13, 10, 9};
  grid.to = {17, 12, 14};
  grid.file.spacing_um = {2000, 700, 900};
  grid.file.affine = {0.9, 0, 0, 5, 0, 0.7, 0, -3, 0, 0, 2, 1};
  grid.given = grid.file;
  data::spatial::Turn turn = data::spatial::mirror("", {}, 3);
  const at::Tensor order = at::randperm(3);
  for (int64_t d = 0; d < 3; ++d) {
    turn.from[static_cast<std::size_t>(d)] = order[d].item<int64_t>();
    turn.mirrored[static_cast<std::size_t>(d)] = at::rand({1}).item<double>() < 0.5;
  }
  data::spatial::move_voxels(grid.given, data::spatial::matrix_of(turn, grid.to));
  at::Tensor matrix = at::eye(4, at::kDouble);
  for (int64_t d = 0; d < 3; ++d) {
    const double scale =
        static_cast<double>(
            grid.to[static_cast<std::size_t>(turn.from[static_cast<std::size_t>(d)])]) /
        static_cast<double>(grid.from[static_cast<std::size_t>(d)]);
    matrix[d][d] = scale * 0.91;
    matrix[d][3] = scale / 2 - 0.5 + 0.313;
  }
  if (is_turned) matrix[0][1] = 0.2;
  data::spatial::move_voxels(grid.given, matrix);
  return grid;
}

at::Tensor by_rows(const ToFileGrid& grid, const at::Tensor& values, int64_t rows) {
  const auto step = grid.rows();
  std::vector<at::Tensor> made;
  for (const at::Tensor& part : values.split(rows, 1))
    if (at::Tensor some = step->add(part); some.defined()) made.push_back(some);
  for (at::Tensor some = step->rest(); some.defined(); some = step->rest()) made.push_back(some);
  return at::cat(made, 1);
}

/// Where a voxel of the file is taken from, as sample_affine() needs it.
at::Tensor sampled(const ToFileGrid& grid, const at::Tensor& values, const char* mode) {
  const at::Tensor matrix = data::spatial::voxels_between(grid.given, grid.file, 3);
  return data::spatial::sample_affine(
      values, matrix, grid.to, mode, "border", at::kDouble, /*align_corners=*/false);
}

TEST(OriginalGrid, RowsEqualTheWhole) {
  at::manual_seed(1);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    ToFileGrid grid = some_grids(i % 4 == 3);
    const at::Tensor scores = at::randn({5, 13, 10, 9});
    const at::Tensor inside = [&] {
      const at::Tensor matrix = data::spatial::voxels_between(grid.given, grid.file, 3);
      return data::spatial::sample_affine(
                 at::ones({1, 13, 10, 9}), matrix, grid.to, "nearest", "zeros", at::kDouble, false)
          .gt(0);
    }();
    EXPECT_GT(inside.sum().item<int64_t>(), 100);
    EXPECT_GT(inside.logical_not().sum().item<int64_t>(), 10);
    const int64_t rows = 1 + i % 6;

    const at::Tensor values = by_rows(grid, scores, rows);
    EXPECT_TRUE(values.equal(all_of(*grid.rows(), scores)));
    EXPECT_TRUE(values.allclose(sampled(grid, scores, "bilinear") * inside, 1e-5, 1e-5));

    grid.finish.emplace();
    grid.finish->kind = ops::Finish::Kind::argmax;
    grid.finish->type = at::kByte;
    const at::Tensor labels = by_rows(grid, scores, rows);
    EXPECT_EQ(labels.scalar_type(), at::kByte);
    EXPECT_TRUE(labels.equal(values.argmax(0, true).to(at::kByte).mul(inside)));

    grid.finish.reset();
    grid.are_labels = true;
    const at::Tensor numbers = at::randint(1, 1 << 24, {1, 13, 10, 9}, at::kInt),
                     nearest = by_rows(grid, numbers, rows);
    EXPECT_EQ(nearest.scalar_type(), at::kInt);
    EXPECT_TRUE(nearest.equal(all_of(*grid.rows(), numbers)));
    const at::Tensor plain = (sampled(grid, numbers, "nearest") * inside).to(at::kInt);
    EXPECT_TRUE(nearest.equal(plain));
  }
}

}  // namespace
}  // namespace cytra::inference
