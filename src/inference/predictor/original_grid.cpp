#include "inference/predictor/original_grid.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/resample.h"
#include "data/sample/voxel_axes.h"

namespace cytra::inference {
namespace {

/// The axis of the result that each axis of the file follows; undefined: they are turned against
/// each other. `matrix`: voxels_between().
at::Tensor followed_axes(const at::Tensor& matrix, const std::vector<int64_t>& size) {
  constexpr double kNothing = 1e-6;  // voxels, over the whole image
  const auto dims = std::ssize(size);
  const at::Tensor follows =
      (matrix.narrow(0, 0, dims).narrow(1, 0, dims).abs() * at::tensor(size)).gt(kNothing);
  const auto is_one = [&](int64_t dim) { return follows.sum(dim).eq(1).all().item<bool>(); };
  return is_one(0) && is_one(1) ? follows.to(at::kInt).argmax(0) : at::Tensor();
}

/// Takes the values at `places`, in voxels, along an axis; 0 outside. Of two voxels that are
/// equally near the later one is taken, as scipy.ndimage.zoom does.
at::Tensor along_axis(const at::Tensor& values,
                      int64_t dim,
                      const at::Tensor& places,
                      bool is_nearest) {
  const int64_t last = values.size(dim) - 1;
  std::vector<int64_t> shape(static_cast<std::size_t>(values.dim()), 1);
  shape[static_cast<std::size_t>(dim)] = -1;
  const auto taken = [&](const at::Tensor& voxels) {
    const at::Tensor is_outside = voxels.lt(0).logical_or(voxels.gt(last)).view(shape);
    return values.index_select(dim, voxels.clamp(0, last)).masked_fill_(is_outside, 0);
  };
  if (is_nearest) return taken((places + 0.5).floor().to(at::kLong));
  const at::Tensor below = places.floor();
  const at::Tensor part = (places - below).to(at::kFloat).view(shape);
  const at::Tensor first = below.to(at::kLong);
  return taken(first).mul_(1 - part).add_(taken(first + 1).mul_(part));
}

}  // namespace

void to_grid(Result& result, const std::vector<int64_t>& size, const io::Geometry& geometry) {
  if (!result.geometry.has_affine() || !geometry.has_affine())
    throw DataError("the file does not say where its voxels lie; leave predict.original_grid out");
  const at::Tensor matrix = data::spatial::voxels_between(result.geometry, geometry, size.size());
  const at::Tensor axes = followed_axes(matrix, size);
  if (!axes.defined()) {
    result.values = data::spatial::sample_affine(result.values,
                                                 matrix,
                                                 size,
                                                 result.is_labels ? "nearest" : "bilinear",
                                                 "zeros",
                                                 at::kDouble,
                                                 /*align_corners=*/true);
  } else {
    std::vector<int64_t> order{0};
    for (int64_t j = 0; j < axes.numel(); ++j) order.push_back(axes[j].item<int64_t>() + 1);
    at::Tensor values = result.values.permute(order);
    if (!result.is_labels) values = values.to(at::kFloat);
    for (std::size_t j = 0; j < size.size(); ++j) {
      const at::Tensor row = matrix[order[j + 1] - 1];
      const double step = row[static_cast<int64_t>(j)].item<double>(),
                   start = row[-1].item<double>();
      std::vector<double> places;
      for (int64_t i = 0; i < size[j]; ++i)
        places.push_back(data::spatial::snapped(step * static_cast<double>(i) + start));
      values = along_axis(
          values, static_cast<int64_t>(j) + 1, at::tensor(places, at::kDouble), result.is_labels);
    }
    result.values = values.contiguous();
  }
  if (result.is_labels) result.values = result.values.to(at::kInt);
  result.geometry = geometry;
}

}  // namespace cytra::inference
