// Spacingd: resamples to a distance between voxels. Source: monai.transforms.Spacingd.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/voxel_axes.h"
#include "data/sample/voxel_frame.h"
#include "data/transforms/spatial/affine_options.h"

namespace cytra::data::spatial {
namespace {

struct Spacingd : SampleOptions {
  static constexpr bool kIsBounded = true;
  Spacingd() : SampleOptions("border", /*splines=*/true) {}
  std::vector<double> pixdim;
  bool diagonal = false;
  std::vector<bool> align_corners{false};
  void visit(auto& v) {
    SampleOptions::visit(v);
    v("pixdim",
      pixdim,
      "millimetres between voxels per spatial dimension (Z,Y,X), 0.001 is one micrometre; <= 0: "
      "as it is; the last number stands for those that are missing",
      config::required);
    v("diagonal",
      diagonal,
      "turn a volume to the world's axes, too, so that its affine is diagonal; false: it keeps "
      "its orientation");
    v("align_corners", align_corners, "as torch's grid_sample; one, or one per key");
    v("dtype",
      config::Unused{{"float64", "np.float64", "numpy.float64", "torch.float64"}},
      "computed in float64");
    v("scale_extent", config::Unused{{"false"}}, "centres, not edges, of the outer voxels stay");
    v("recompute_affine", config::Unused{{"false"}}, "the geometry holds pixdim");
    v("min_pixdim", config::Unused{{"null"}}, "every image is resampled to pixdim");
    v("max_pixdim", config::Unused{{"null"}}, "every image is resampled to pixdim");
    v("ensure_same_shape", config::Unused{}, "each image is resampled by its own affine");
  }
  void check() const {
    SampleOptions::check();
    check_per_key("align_corners", align_corners, *this);
  }

  void operator()(Sample& sample) const {
    const bool stays = std::ranges::all_of(pixdim, [](double mm) { return mm <= 0; });
    if (stays && !diagonal) return;  // even if the spacing is unknown
    for_each(sample, [&](const at::Tensor& image, std::size_t key, auto& geometry) {
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      const std::vector<double> spacing = spacing_for(geometry, size.size());
      const ResultGrid grid = result_grid(axes_of(geometry, size.size()), spacing, size, diagonal);
      if (grid.unchanged) return image;
      check_units(geometry, spacing, size, grid.size);
      move_voxels(geometry, grid.matrix);
      return sample_affine(image,
                           grid.matrix,
                           grid.size,
                           of_key(mode, key),
                           of_key(padding_mode, key),
                           at::kDouble,
                           of_key(align_corners, key),
                           sample.folder);
    });
  }

 private:
  static constexpr double kTolerance = 1e-3;  // MONAI's AFFINE_TOL

  /// The spacing of the result, in mm.
  std::vector<double> spacing_for(const io::Geometry& geometry, std::size_t dims) const {
    std::vector<double> spacing;
    for (std::size_t d = 0; d < dims; ++d) {
      const double now = geometry.spacing_um[3 - dims + d] / 1000;
      const double wanted = pixdim[std::min(d, pixdim.size() - 1)];
      if (!(now > 0)) {
        throw DataError("Spacingd needs the distance between voxels, which the file does not have");
      }
      // MONAI keeps a spacing that differs by less than 0.001 mm; in a microscope's image that is
      // everything, so below 1 mm the tolerance is proportional to the distance.
      const bool same = std::abs(wanted - now) <= kTolerance * std::min(1.0, now);
      spacing.push_back(wanted <= 0 || same ? now : wanted);
    }
    return spacing;
  }

  /// Checks for millimetres that were meant as micrometres, or the reverse: they would reduce an
  /// image to one voxel, or need more memory than any machine has.
  static void check_units(const io::Geometry& geometry,
                          const std::vector<double>& spacing,
                          const std::vector<int64_t>& before,
                          const std::vector<int64_t>& after) {
    const std::size_t dims = before.size();
    bool is_one = false;
    double growth = 1;
    for (std::size_t d = 0; d < dims; ++d) {
      is_one = is_one || (d + 2 >= dims && before[d] > 1 && after[d] <= 1);
      growth *= static_cast<double>(after[d]) / static_cast<double>(before[d]);
    }
    constexpr double kMostGrowth = 1e5;
    if (!is_one && growth < kMostGrowth) return;
    std::vector<double> now, um;
    for (std::size_t d = 0; d < dims; ++d) {
      now.push_back(geometry.spacing_um[3 - dims + d]);
      um.push_back(spacing[d] * 1000);
    }
    throw DataError(
        "{} voxels would become {}: its voxels are of {:.6g} um, pixdim asks for {:.6g} mm, which "
        "are {:.6g} um; expected pixdim in mm, 0.001 for each um",
        fmt::join(before, "x"),
        fmt::join(after, "x"),
        fmt::join(now, " x "),
        fmt::join(spacing, " x "),
        fmt::join(um, " x "));
  }

  struct ResultGrid {
    at::Tensor matrix;  // from the result's voxels to the image's
    std::vector<int64_t> size;
    bool unchanged;
  };
  /// The voxels of the result, as monai.data.utils.{zoom_affine, compute_shape_offset}.
  static ResultGrid result_grid(const at::Tensor& axes,
                                const std::vector<double>& spacing,
                                const std::vector<int64_t>& image,
                                bool diagonal) {
    const auto n = std::ssize(image);
    const at::Tensor old = axes.slice(0, 0, n).slice(1, 0, n);
    at::Tensor target = at::eye(n + 1, at::kDouble);
    at::Tensor rotation = target.slice(0, 0, n).slice(1, 0, n);
    rotation.mul_(at::tensor(spacing, at::kDouble));
    if (!diagonal) {
      const at::Tensor upper = at::linalg_cholesky(old.t().matmul(old)).t();
      rotation.copy_(old.matmul(at::linalg_inv(upper)).matmul(rotation));
    }
    // The corners of the image, counted in the result's voxels.
    std::vector<at::Tensor> ends;
    for (const int64_t size : image)
      ends.push_back(at::tensor({0.0, static_cast<double>(size - 1)}, at::kDouble));
    at::Tensor corners = at::stack(at::meshgrid(ends, "ij")).reshape({n, -1});
    corners = at::cat({corners, at::ones_like(corners.slice(0, 0, 1))});
    const at::Tensor places = at::linalg_solve(target, axes).matmul(corners).slice(0, 0, n);
    const at::Tensor extent = places.amax(1) - places.amin(1);
    ResultGrid grid{{}, {}, true};
    for (int64_t d = 0; d < n; ++d)
      grid.size.push_back(std::llrint(snapped(extent[d].item<double>()) + 1));
    const at::Tensor size = at::tensor(grid.size, at::kDouble);
    // The corner below all others is kept in place, when there is one; else the centre.
    at::Tensor origin;
    for (int64_t i = 0; i < corners.size(1) && !origin.defined(); ++i) {
      const at::Tensor below = (places - places.slice(1, i, i + 1)).amin(1).abs();
      if (below.max().item<double>() <= 1e-8)
        origin = axes.matmul(corners).slice(0, 0, n).select(1, i);
    }
    if (!origin.defined()) {
      const at::Tensor half = at::tensor(image, at::kLong).to(at::kDouble) / 2;
      origin = old.matmul(half) + axes.slice(0, 0, n).select(1, n) - rotation.matmul(size / 2);
    }
    target.slice(0, 0, n).select(1, n).copy_(origin);
    grid.matrix = at::linalg_solve(axes, target);
    grid.unchanged = grid.size == image && is_identity(grid.matrix);
    return grid;
  }
};
CYTRA_REGISTER(Transform, PerSample<Spacingd>, "Spacingd");

}  // namespace
}  // namespace cytra::data::spatial
