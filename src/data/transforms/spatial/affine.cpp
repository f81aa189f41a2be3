// Affined and RandAffined. Source: monai.transforms, the same names.
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/batch_transforms/batch_grid.h"
#include "data/batch_transforms/per_batch.h"
#include "data/transforms/spatial/affine_options.h"

namespace cytra::data::spatial {
namespace {

struct Affined : SampleOptions {
  std::vector<double> rotate_params, shear_params, translate_params, scale_params;
  std::vector<std::vector<double>> affine;
  std::vector<int64_t> spatial_size;
  bool align_corners = false;
  std::string rotate_order = "XYZ";
  void visit(auto& v) {
    SampleOptions::visit(v);
    visit_dtype(v);
    v("rotate_params",
      rotate_params,
      "radians: one number in 2D, in 3D up to three, about each spatial axis");
    v("shear_params", shear_params, "two factors in 2D, six in 3D");
    v("translate_params", translate_params, "voxels per spatial dimension");
    v("scale_params", scale_params, "per spatial dimension; 2 shows twice as much of the image");
    v("affine", affine, "rows of the matrix instead of those parameters, about the centre");
    v("spatial_size", spatial_size, "voxels of the result; default and <= 0: the image's");
    v("align_corners", align_corners, "as torch's grid_sample");
    v("rotate_order",
      rotate_order,
      "3D: the order of the axes (x: the first spatial one); XYZ about the turned axes, xyz "
      "about the fixed ones");
  }
  void check() const {
    SampleOptions::check();
    check_rotate_order("rotate_order", rotate_order, rotate_params.size());
    for (const auto& row : affine) {
      const bool square = row.size() == affine.size() || row.size() == affine.size() + 1;
      if (!square || row.size() < 3 || row.size() > 4)
        throw ConfigError("affine: expected a 3x3 or 4x4 matrix (the last row may be left out)");
    }
  }

  void operator()(Sample& sample) const {
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return;
    const auto size = size_or("Affined: spatial_size", spatial_size, image);
    at::Tensor matrix = this->matrix(std::ssize(image));
    follow(sample, matrix, size);
    if (align_corners) {
      std::vector<double> scale;
      for (const int64_t given : size) {
        const auto n = static_cast<double>(std::max<int64_t>(given, 2));
        scale.push_back(n / (n - 1));
      }
      AffineParameters stretch;
      stretch.scale = scale;
      matrix = matrix.matmul(affine_matrix(std::ssize(size), stretch));
    }
    const at::Tensor grid = transform_grid(matrix, identity_grid(size));
    sample_all(sample, grid, at::kFloat, align_corners);
  }

 private:
  at::Tensor matrix(int64_t dims) const {
    if (affine.empty()) {
      return affine_matrix(
          dims, {rotate_params, shear_params, translate_params, scale_params}, rotate_order);
    }
    if (std::ssize(affine.front()) != dims + 1) {
      throw ConfigError("Affined: affine has {} columns, expected {} for {}D images",
                        affine.front().size(),
                        dims + 1,
                        dims);
    }
    at::Tensor matrix = at::eye(dims + 1, at::kDouble);
    for (int64_t i = 0; i < dims; ++i) {
      for (int64_t j = 0; j <= dims; ++j)
        matrix[i][j] = affine[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
    return matrix;
  }
};
CYTRA_REGISTER(Transform, PerSample<Affined>, "Affined");

struct RandAffined : RandAffineOptions {
  void visit(auto& v) {
    RandAffineOptions::visit(v);
    v("cache_grid", config::Unused{}, "of MONAI");
  }

  void operator()(Sample& sample, Rng& rng) const {
    const bool chosen = rng.uniform() < prob;
    const std::vector<int64_t> image = first_size(sample);
    const auto size = size_or("RandAffined: spatial_size", spatial_size, image);
    if (image.empty() || (!chosen && size == image)) return;
    const auto dims = std::ssize(size);
    at::Tensor grid = identity_grid(size), matrix = at::eye(dims + 1, at::kDouble);
    if (chosen) {
      matrix = draw_matrix(dims, rng);
      grid = transform_grid(matrix, grid);
    }
    follow(sample, matrix, size);
    sample_all(sample, grid, at::kDouble);
  }
};
CYTRA_REGISTER(Transform, PerSample<RandAffined>, "RandAffined");

struct BatchAffine : RandAffined {
  void check() const {
    RandAffined::check();
    check_batch();
  }
  at::Tensor draw_one(Rng& rng, at::IntArrayRef image) const {
    return draw_matrix(std::ssize(image) - 1, rng);
  }
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<at::Tensor>& drawn,
                      std::size_t key) const {
    const auto options = images.options().dtype(grid_type(of_key(mode, key)));
    const at::Tensor matrices = to_device(at::stack(drawn), images.device()).to(options);
    const auto points = voxel_points(images.sizes().slice(2), options);
    return sample_batch(
        images, transform_points(matrices, points), of_key(mode, key), of_key(padding_mode, key));
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchAffine>, "RandAffined");

}  // namespace
}  // namespace cytra::data::spatial
