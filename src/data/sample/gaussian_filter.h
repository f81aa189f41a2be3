#pragma once
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data {

/// The taps of a Gaussian, `truncated` sigmas to both sides. approx: "erf" (integrals over each
/// voxel), "sampled" or "scalespace" (the discrete kernel of Lindeberg). Not normalised. Source:
/// monai's gaussian_1d.
std::vector<float> gaussian_kernel(double sigma, const std::string& approx, double truncated = 4);

/// Smooths along each spatial axis, with zeros beyond the border. Source: monai's GaussianFilter.
/// Shape: (C,[Z,]Y,X). Units: voxels, one sigma or one per axis, 0: unchanged. Throws: DataError
/// for another number of sigmas.
at::Tensor gaussian_filter(const at::Tensor& image,
                           const std::vector<double>& sigma,
                           const std::string& approx,
                           double truncated = 4);

}  // namespace cytra::data
