// Sampling between voxels beside torch's grid_sample, and splines in parts beside the whole.
#include "data/sample/sample_voxels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/sample/resample.h"
#include "data/sample/spline.h"

namespace cytra::data::spatial {
namespace {

/// Places of voxels, (z,y,x,d) in voxels, as torch's grid_sample takes them.
at::Tensor in_corners(const at::Tensor& voxels, at::IntArrayRef size, bool align_corners) {
  at::Tensor points = voxels.clone();
  for (int64_t d = 0; d < std::ssize(size); ++d) {
    const auto n = static_cast<double>(size[static_cast<std::size_t>(d)]);
    at::Tensor axis = points.select(-1, d);
    align_corners ? axis.mul_(2 / (n - 1)).sub_(1) : axis.mul_(2).add_(1).div_(n).sub_(1);
  }
  return points.flip(-1).unsqueeze(0);
}

/// A matrix that turns, scales, mirrors and shifts, or one whose axes follow the image's.
at::Tensor some_matrix(int64_t dims, bool follows) {
  at::Tensor matrix = at::eye(dims + 1, at::kDouble);
  at::Tensor turn = matrix.narrow(0, 0, dims).narrow(1, 0, dims);
  const at::Tensor scales = at::rand({dims}, at::kDouble).add_(0.4);
  if (follows)
    turn.copy_(at::eye(dims, at::kDouble).index_select(0, at::randperm(dims)) * scales);
  else
    turn.add_(at::randn({dims, dims}, at::kDouble), 0.3);
  if (at::rand({1}).item<double>() < 0.5) turn.select(1, 0).neg_();
  matrix.select(1, dims).narrow(0, 0, dims).copy_(at::randn({dims}, at::kDouble) * 4 + 3);
  return matrix;
}

TEST(SampleVoxels, EqualsGridSample) {
  at::manual_seed(0);
  for (int i = 0; i < 200; ++i) {
    const int64_t dims = 2 + i % 2;
    const bool follows = i % 3 > 0, align_corners = i % 5 < 2;
    const std::string mode = i % 7 < 2 ? "nearest" : "bilinear",
                      padding = kSamplePadModes[static_cast<std::size_t>(i) % 3];
    std::vector<int64_t> size{9, 7, 11}, result{6, 8, 5};
    if (dims == 2) size.erase(size.begin()), result.erase(result.begin());
    std::vector<int64_t> shape = size;
    shape.insert(shape.begin(), 3);
    // A view whose axes are not in their usual order.
    const at::Tensor image = at::randn(shape).transpose(1, -1).contiguous().transpose(1, -1),
                     matrix = some_matrix(dims, follows);
    std::vector<at::Tensor> ranges;
    for (const int64_t n : result) ranges.push_back(at::arange(n, at::kDouble));
    std::vector<at::Tensor> axes = at::meshgrid(ranges, "ij");
    axes.push_back(at::ones_like(axes[0]));
    const at::Tensor voxels = at::stack(axes, -1).matmul(matrix.t()).narrow(-1, 0, dims),
                     points = in_corners(voxels, size, align_corners);
    const at::Tensor expected =
        mode == "nearest" ? sample_nearest(image.unsqueeze(0), points, padding, align_corners)[0]
                          : at::grid_sampler(image.to(at::kDouble).unsqueeze(0),
                                             points,
                                             0,
                                             padding == "zeros"    ? 0
                                             : padding == "border" ? 1
                                                                   : 2,
                                             align_corners)[0]
                                .to(at::kFloat);
    const at::Tensor made =
        sample_affine(image, matrix, result, mode, padding, at::kDouble, align_corners);
    ASSERT_EQ(places_along_axes(matrix, result).empty(), !follows);
    ASSERT_TRUE(made.allclose(expected, 1e-6, 1e-6)) << i << " " << mode << " " << padding;
  }
}

TEST(SampleSpline, IsTheSameInParts) {
  at::manual_seed(0);
  int64_t differ = 0, all = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t order = i % 6;
    const std::string padding = kSamplePadModes[static_cast<std::size_t>(i) % 3];
    const at::Tensor image = at::randn({2, 90, 14, 17});
    at::Tensor matrix = some_matrix(3, i % 4 > 0);
    const std::vector<int64_t> size{130, 9, 8};
    const auto sampled = [&](int64_t at_once) {
      return sample_spline(image, matrix, size, order, padding, false, "", at_once);
    };
    const at::Tensor whole = sampled(INT64_MAX), parts = sampled(1);
    ASSERT_TRUE(parts.allclose(whole, 1e-6, 1e-6)) << i;
    differ += parts.ne(whole).sum().item<int64_t>();
    all += whole.numel();
  }
  EXPECT_LT(differ, all / 100000);
}

}  // namespace
}  // namespace cytra::data::spatial
