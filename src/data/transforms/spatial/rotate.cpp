// Rotated and RandRotated. Source: monai.transforms, the same names.

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial/affine_options.h"

namespace cytra::data::spatial {
namespace {

struct RotateOptions : ModeOptions {
  RotateOptions() : ModeOptions("border", /*splines=*/false) {}
  bool keep_size = true;
  std::vector<bool> align_corners{false};
  void visit(auto& v) {
    ModeOptions::visit(v);
    visit_dtype(v);
    v("keep_size", keep_size, "the result has the image's size; false: it holds the whole image");
    v("align_corners", align_corners, "as torch's grid_sample; one, or one per key");
  }
  void check() const {
    ModeOptions::check();
    check_per_key("align_corners", align_corners, *this);
  }
  /// Rotates every key. angle: one number in 2D, in 3D one about each axis.
  void rotate_all(Sample& sample,
                  const std::vector<double>& angle,
                  const std::string& order) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry& geometry) {
      return rotate(image, angle, order, key, geometry);
    });
  }

 private:
  at::Tensor rotate(const at::Tensor& image,
                    const std::vector<double>& angle,
                    const std::string& order,
                    std::size_t key,
                    io::Geometry& geometry) const {
    const int64_t dims = image.dim() - 1;
    const std::vector<double> angles =
        dims == 2 ? per_dim("angle", angle, 1) : per_dim("angle", angle, 3);
    const at::Tensor rotation = rotation_matrix(dims, angles, order);
    std::vector<int64_t> size = image.sizes().slice(1).vec();
    if (!keep_size) {
      // The extent of the turned box along an axis: the sum of its sides' extents there.
      const at::Tensor sides = at::tensor(size, at::kLong).to(at::kDouble);
      const at::Tensor extent = rotation.slice(0, 0, dims).slice(1, 0, dims).abs().matmul(sides);
      for (std::size_t d = 0; d < size.size(); ++d)
        size[d] =
            static_cast<int64_t>(snapped(extent[static_cast<int64_t>(d)].item<double>()) + 0.5);
    }
    const at::Tensor matrix = about_centers(rotation, image.sizes().slice(1), size);
    move_voxels(geometry, matrix);
    return sample_affine(image,
                         matrix,
                         size,
                         of_key(mode, key),
                         of_key(padding_mode, key),
                         at::kFloat,
                         of_key(align_corners, key));
  }
};

struct Rotated : RotateOptions {
  std::vector<double> angle;
  std::string rotate_order = "XYZ";
  void visit(auto& v) {
    RotateOptions::visit(v);
    v("angle",
      angle,
      "radians: one number in 2D, in 3D one about each spatial axis",
      config::required);
    v("rotate_order",
      rotate_order,
      "3D: the order of the axes (x: the first spatial one); XYZ about the turned axes, xyz "
      "about the fixed ones");
  }
  void check() const {
    RotateOptions::check();
    check_rotate_order("rotate_order", rotate_order, angle.size());
  }

  void operator()(Sample& sample) const { rotate_all(sample, angle, rotate_order); }
};
CYTRA_REGISTER(Transform, PerSample<Rotated>, "Rotated");

struct RandRotated : RotateOptions {
  std::vector<double> range_x{0}, range_y{0}, range_z{0};
  double prob = 0.1;
  void visit(auto& v) {
    RotateOptions::visit(v);
    v("prob", prob, "probability of a rotation", 0, 1);
    v("range_x",
      range_x,
      "radians, [low, high] or a for [-a, a]: the turn in 2D, in 3D about the first spatial "
      "axis");
    v("range_y", range_y, "radians, likewise: 3D, about the second axis");
    v("range_z", range_z, "radians, likewise: 3D, about the third axis");
  }
  void check() const {
    RotateOptions::check();
    check_range("range_x", range_x, true);
    check_range("range_y", range_y, true);
    check_range("range_z", range_z, true);
  }

  void operator()(Sample& sample, Rng& rng) const {
    if (rng.uniform() >= prob) return;
    std::vector<double> angles;
    for (const auto* range : {&range_x, &range_y, &range_z})
      angles.push_back(Range(*range, -range->front()).draw(rng));
    if (first_size(sample).size() == 2) angles.resize(1);
    rotate_all(sample, angles, "XYZ");
  }
};
CYTRA_REGISTER(Transform, PerSample<RandRotated>, "RandRotated");

}  // namespace
}  // namespace cytra::data::spatial
