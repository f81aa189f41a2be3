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
/// `folder`: as ops::room_for(), for the result. `at_once`: coefficients that are kept at a time, 8
/// bytes each; of a larger image the result is made part by part, from coefficients that are right
/// to 1e-17 of its values.
at::Tensor sample_spline(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         int64_t order,
                         const std::string& padding_mode,
                         bool align_corners,
                         const std::string& folder = "",
                         int64_t at_once = int64_t{1} << 26);

}  // namespace cytra::data::spatial
