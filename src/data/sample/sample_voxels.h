#pragma once
// Samples an image at places of its axes or of a matrix. The memory besides image and result is
// that of some lines, so that both may lie in files.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace cytra::data::spatial {

/// What a place between voxels gets: a value between theirs; the nearest voxel's, of two the even
/// one's (torch's grid_sample, with coordinates snapped()), or the later one's (scipy's zoom).
enum class Between { linear, nearest_even, nearest_later };

/// The places along an image's axis that a result's axis is made of.
struct AxisPlaces {
  int64_t axis;              // the image's, 0: the first spatial one
  std::vector<double> from;  // voxels; between them or beyond the image, too
  Between between = Between::linear;
};

/// The places by which a result of `size`, whose voxel p is the image's matrix @ p, follows the
/// axes of an image; an empty list where they are turned against each other.
/// `matrix`: (dims+1, dims+1) float64.
std::vector<AxisPlaces> places_along_axes(const at::Tensor& matrix,
                                          const std::vector<int64_t>& size);

/// Samples an image at the places of each axis of the result. padding_mode: zeros, border and
/// reflection as torch's grid_sample; near: border up to half a voxel beyond the image, then 0.
/// `dtype`: float32 or float64, in which is computed.
/// `folder`: as ops::room_for(), for the result.
/// Shape: image (C,[D,]H,W) float32, any strides -> (C, places of each axis) float32.
at::Tensor sample_along_axes(const at::Tensor& image,
                             const std::vector<AxisPlaces>& places,
                             const std::string& padding_mode,
                             bool align_corners,
                             c10::ScalarType dtype,
                             const std::string& folder = "");

/// Samples an image where voxel p of the result, homogeneous, is taken from matrix @ p, as
/// torch's grid_sample in float64. Other arguments: as of sample_along_axes().
/// Shape: image (C,[D,]H,W) float32 or int32, any strides -> (C,*size) float32.
at::Tensor sample_at_matrix(const at::Tensor& image,
                            const at::Tensor& matrix,
                            const std::vector<int64_t>& size,
                            Between between,
                            const std::string& padding_mode,
                            bool align_corners,
                            const std::string& folder = "");

}  // namespace cytra::data::spatial
