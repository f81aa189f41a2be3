#pragma once
// The affine of an image as a matrix for its tensor's axes, to bring one image to the voxels of
// another.
#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data::spatial {

/// For (z,y,x,1) or (y,x,1), to a world of (z,y,x) or (y,x) in mm. float64. A plane, or a volume
/// whose affine is not known, has axes of its own. Throws: DataError (no spacing).
at::Tensor axes_of(const io::Geometry& geometry, std::size_t dims);
/// By MONAI's tolerance: what differs less is not resampled.
bool is_identity(const at::Tensor& matrix);

}  // namespace cytra::data::spatial
