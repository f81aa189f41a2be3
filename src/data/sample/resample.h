#pragma once
// Computes values between the voxels of a (C,[Z,]Y,X) tensor: resizing, sampling at the points of
// a grid, and the affine matrices and grids of MONAI. A grid is ([z,]y,x,1) x points, in voxels
// from the image's centre. Results are float32.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace cytra::data::spatial {

extern const std::vector<std::string> kResizeModes, kSampleModes, kSamplePadModes;

/// Resizes as torch.nn.functional.interpolate; every *linear mode means the one for the image's
/// dimensions.
/// Throws: DataError for bicubic of a stack.
at::Tensor resize(const at::Tensor& image,
                  const std::vector<int64_t>& size,
                  const std::string& mode,
                  bool align_corners);

/// Rounds to the next 2^-20: what rounding made of a tie is a tie again, so that what is decided by
/// it does not depend on the processor.
double snapped(double x);
/// The voxels nearest to points in [-1, 1], x first, as torch's grid_sampler has them. The rule for
/// ties, on any processor: coordinates are snapped(), and a point in the middle between two voxels
/// takes the even one. Shape: images (N,C,[Z,]Y,X), points (N,[z,]y,x,d) float64 ->
/// (N,C,[z,]y,x) of the images' type.
at::Tensor sample_nearest(const at::Tensor& images,
                          const at::Tensor& points,
                          const std::string& padding_mode,
                          bool align_corners);
/// Samples the nearest voxels, or between the voxels in the type of `points`. Mode nearest needs
/// float64.
at::Tensor sample_points(const at::Tensor& images,
                         const at::Tensor& points,
                         const std::string& mode,
                         const std::string& padding_mode,
                         bool align_corners);

/// The matrix of rotations in radians about the axes that `order` names, where x is the first
/// spatial axis. float64.
at::Tensor rotation_matrix(int64_t dims,
                           const std::vector<double>& radians,
                           const std::string& order);
/// Checks the order. Throws: ConfigError; `place` names the option.
void check_rotate_order(const char* place, const std::string& order, std::size_t angles);

/// The parameters of monai.transforms.AffineGrid; empty: left out.
struct AffineParameters {
  std::vector<double> rotate;     // radians: 1 (2D) or up to 3 (3D)
  std::vector<double> shear;      // 2 (2D) or 6 (3D) coefficients
  std::vector<double> translate;  // voxels
  std::vector<double> scale;      // 1: unchanged; 2: twice the field of view
};
/// The matrix, (dims+1, dims+1) float64: rotation @ shear @ translation @ scale.
at::Tensor affine_matrix(int64_t dims,
                         const AffineParameters& parameters,
                         const std::string& order = "XYZ");

/// The grid of a whole image. float64.
at::Tensor identity_grid(const std::vector<int64_t>& size);
/// The grid matrix @ grid. float64.
at::Tensor transform_grid(const at::Tensor& matrix, const at::Tensor& grid);
/// Samples an image at a grid, as monai.transforms.Resample. dtype: the type in which values
/// between voxels are computed; nearest is done by sample_nearest().
at::Tensor sample_grid(const at::Tensor& image,
                       const at::Tensor& grid,
                       const std::string& mode,
                       const std::string& padding_mode,
                       c10::ScalarType dtype,
                       bool align_corners = false);
/// Converts `matrix`, which acts about the centres of an image of `from` and a result of `to`
/// voxels, to a matrix for voxels counted from the first one: the image's voxel = matrix @ the
/// result's voxel. float64.
at::Tensor about_centers(const at::Tensor& matrix, at::IntArrayRef from, at::IntArrayRef to);
/// Samples an image as monai.networks.layers.AffineTransform(normalized=False,
/// reverse_indexing=True): the voxel p of the result, homogeneous, is taken from matrix @ p.
/// matrix: float64. folder: as ops::room_for(), for the result.
at::Tensor sample_affine(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         const std::string& mode,
                         const std::string& padding_mode,
                         c10::ScalarType dtype,
                         bool align_corners,
                         const std::string& folder = "");

}  // namespace cytra::data::spatial
