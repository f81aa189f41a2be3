#pragma once
#include "inference/postprocess/postprocess.h"

namespace cytra::inference {

/// Resamples a result to the voxels of the image on file: labels by the nearest voxel, other
/// values linearly; 0 outside of the predicted part.
/// Shape: result (C,[D,]H,W) with the affine of its own voxels; `size` ([D,]H,W) of the image,
/// `geometry` its own, with an affine. Throws: DataError where one of the affines is missing, or
/// planes of a 2D image are not the same.
void to_grid(Result& result, const std::vector<int64_t>& size, const io::Geometry& geometry);

}  // namespace cytra::inference
