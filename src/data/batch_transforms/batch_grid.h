#pragma once
// Sampling whole batches at grids of their own: resample.h's functions for (N,C,[D,]H,W). Without
// matrix products, which a GPU may compute in TF32: a coordinate would be off by half a voxel.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// What points are computed in: float64 where the nearest voxel is taken, else float32.
c10::ScalarType grid_type(const std::string& mode);
/// matrices: (N,d+1,d+1) of the points' type and device; points: d tensors that broadcast to
/// (N,[D,]H,W), in voxels from the centre. Shape: (N,d,[D,]H,W).
at::Tensor transform_points(const at::Tensor& matrices, const std::vector<at::Tensor>& points);
/// Every voxel of an image of `size`, for transform_points(): tensors of one dimension each.
std::vector<at::Tensor> voxel_points(at::IntArrayRef size, const at::TensorOptions& options);
/// Source: monai.transforms.Resample. grid: of transform_points(), in grid_type(mode).
at::Tensor sample_batch(const at::Tensor& images,
                        const at::Tensor& grid,
                        const std::string& mode,
                        const std::string& padding_mode);
/// A Gaussian of its own for each sample: sigmas per sample and axis, in voxels. Zeros beyond the
/// border. As gaussian_filter().
at::Tensor filter_batch(const at::Tensor& images,
                        const std::vector<std::vector<double>>& sigmas,
                        const std::string& approx,
                        double truncated = 4);

}  // namespace cytra::data::spatial
