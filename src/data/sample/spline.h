#pragma once
// B-splines through the voxels of an image: MONAI's `mode: 3`. Source:
// scipy.ndimage.map_coordinates with its prefilter.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// The modes of sample_affine(): kSampleModes, and the order of a spline.
extern const std::vector<std::string> kAffineModes;

/// Samples like sample_affine() of resample.h, by splines of an order from 0 (the nearest voxel)
/// to 5. padding_mode: border, zeros and reflection are scipy's nearest, constant and reflect.
at::Tensor sample_spline(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         int64_t order,
                         const std::string& padding_mode,
                         bool align_corners);

}  // namespace cytra::data::spatial
