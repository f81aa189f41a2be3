#include "inference/predictor/original_grid.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/resample.h"
#include "data/sample/voxel_axes.h"

namespace cytra::inference {
void to_grid(Result& result, const std::vector<int64_t>& size, const io::Geometry& geometry) {
  if (!result.geometry.has_affine() || !geometry.has_affine())
    throw DataError("the file does not say where its voxels lie; leave predict.original_grid out");
  const at::Tensor matrix = data::spatial::voxels_between(result.geometry, geometry, size.size());
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
