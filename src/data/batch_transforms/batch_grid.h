#pragma once
// Samples batches at a grid for each image: resample.h's functions for (N,C,[D,]H,W). Matrix
// products are not used, as a GPU may compute them in TF32: a coordinate could be wrong by half a
// voxel.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// The type in which points are computed: float64 where the nearest voxel is taken, else float32.
c10::ScalarType grid_type(const std::string& mode);
/// matrices: (N,d+1,d+1) of the points' type and device; points: d tensors that broadcast to
/// (N,[D,]H,W), in voxels from the centre. Shape: (N,d,[D,]H,W).
at::Tensor transform_points(const at::Tensor& matrices, const std::vector<at::Tensor>& points);
/// The voxels of an image of `size`, for transform_points(): a tensor for each axis.
std::vector<at::Tensor> voxel_points(at::IntArrayRef size, const at::TensorOptions& options);
/// Samples images at a grid made by transform_points(), in grid_type(mode). Source:
/// monai.transforms.Resample.
at::Tensor sample_batch(const at::Tensor& images,
                        const at::Tensor& grid,
                        const std::string& mode,
                        const std::string& padding_mode);
/// Smooths each sample with its own Gaussian: sigmas per sample and axis, in voxels. Zeros beyond
/// the border, as in gaussian_filter().
at::Tensor filter_batch(const at::Tensor& images,
                        const std::vector<std::vector<double>>& sigmas,
                        const std::string& approx,
                        double truncated = 4);

}  // namespace cytra::data::spatial
