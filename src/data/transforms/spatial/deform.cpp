#include "data/transforms/spatial/deform.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/gaussian_filter.h"
#include "data/sample/pad_crop.h"
#include "data/sample/resample.h"

namespace cytra::data::spatial {

std::vector<int64_t> control_points(const std::vector<int64_t>& size,
                                    const std::vector<double>& spacing) {
  std::vector<int64_t> points;
  for (std::size_t d = 0; d < size.size(); ++d) {
    // float32 is used as in the source, as its rounding decides on one point more or less.
    const float steps = static_cast<float>(size[d] - 1) / static_cast<float>(2 * spacing[d]);
    const float half = size[d] % 2 == 0 ? std::ceil(steps + 0.5F) : std::ceil(steps);
    points.push_back(static_cast<int64_t>(half) * 2 + (size[d] % 2 == 0 ? 2 : 3));
  }
  return points;
}

int64_t fine_size(int64_t points, double spacing) {
  return static_cast<int64_t>(std::floor(static_cast<double>(points) * spacing));
}

at::Tensor deform_2d(const std::vector<int64_t>& size,
                     const std::vector<double>& spacing,
                     const at::Tensor& offset,
                     const at::Tensor& affine) {
  const std::vector<int64_t> points = control_points(size, spacing);
  at::Tensor grid = identity_grid(points);
  std::vector<int64_t> fine;
  for (std::size_t d = 0; d < size.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    grid[axis].mul_(spacing[d]).add_(offset[axis].to(at::kDouble));
    fine.push_back(fine_size(points[d], spacing[d]));
  }
  grid = transform_grid(affine, grid);
  grid = at::upsample_bicubic2d(grid.unsqueeze(0), fine, /*align_corners=*/false).squeeze(0);
  return crop(grid, center_start(fine, size), size);
}

at::Tensor deform_3d(const at::Tensor& offset,
                     double sigma,
                     double magnitude,
                     const at::Tensor& affine) {
  at::Tensor grid = identity_grid(offset.sizes().slice(1).vec());
  grid.slice(0, 0, 3).add_(gaussian_filter(offset, {sigma}, "erf", 3) * magnitude);
  return transform_grid(affine, grid);
}

at::Tensor distort_cells(const std::vector<int64_t>& size,
                         const std::vector<int64_t>& cells,
                         const std::vector<std::vector<double>>& steps) {
  std::vector<at::Tensor> ranges;
  for (std::size_t d = 0; d < size.size(); ++d) {
    const int64_t n = size[d], length = n / cells[d];
    if (n % cells[d] > length || length == 0) {
      throw DataError(
          "grid distortion: {} voxels along spatial dimension {} are too few for {} cells; set "
          "num_cells per dimension",
          n,
          d,
          cells[d]);
    }
    std::vector<at::Tensor> parts;
    double begin = 0;
    for (int64_t i = 0; i <= cells[d]; ++i) {
      const int64_t first = i * length, last = std::min(first + length, n);
      // Like in the source, a cell that the image cuts off ends at the image's end.
      const double end = first + length > n ? static_cast<double>(n)
                                            : begin + static_cast<double>(length) *
                                                          steps[d][static_cast<std::size_t>(i)];
      parts.push_back(at::linspace(begin, end, last - first, at::kDouble));
      begin = end;
    }
    ranges.push_back(at::cat(parts) - static_cast<double>(n - 1) / 2);
  }
  std::vector<at::Tensor> axes = at::meshgrid(ranges, "ij");
  axes.push_back(at::ones_like(axes[0]));
  return at::stack(axes);
}

}  // namespace cytra::data::spatial
