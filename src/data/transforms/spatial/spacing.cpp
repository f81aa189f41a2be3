// Spacingd: resamples to a distance between voxels. Source: monai.transforms.Spacingd.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial/affine_options.h"
#include "data/transforms/voxel_axes.h"
#include "data/transforms/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

class Spacingd final : public Transform {
 public:
  struct Options : SampleOptions {
    Options() : SampleOptions("border", /*splines=*/true) {}
    std::vector<double> pixdim;
    bool diagonal = false;
    std::vector<bool> align_corners{false};
    template <class V>
    void visit(V& v) {
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
      v("ensure_same_shape", config::Unused{}, "images of one sample have one geometry");
    }
    void check() const {
      SampleOptions::check();
      check_per_key("align_corners", align_corners, *this);
    }
  };
  explicit Spacingd(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    const std::vector<int64_t> first = options_.first_size(sample);
    const auto& pixdim = options_.pixdim;
    const bool stays = std::all_of(pixdim.begin(), pixdim.end(), [](double mm) { return mm <= 0; });
    if (first.empty() || (stays && !options_.diagonal)) return;  // even if nothing is known of it
    const std::size_t dims = first.size();
    std::vector<double> spacing;  // of the result, in mm
    for (std::size_t d = 0; d < dims; ++d) {
      const double now = sample.geometry.spacing_um[3 - dims + d] / 1000;
      const double wish = options_.pixdim[std::min(d, options_.pixdim.size() - 1)];
      if (!(now > 0)) {
        throw DataError(fmt::format(
            "{}: Spacingd needs the distance between voxels, which the file does not have",
            sample.id));
      }
      // MONAI leaves what differs by less than 0.001 mm; in a microscope's image that is
      // everything, so below 1 mm the tolerance shrinks with the distance.
      const bool same = std::abs(wish - now) <= kTolerance * std::min(1.0, now);
      spacing.push_back(wish <= 0 || same ? now : wish);
    }
    const at::Tensor affine = axes_of(sample.geometry, dims);
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t key) {
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      if (size.size() != dims) {
        throw DataError(
            fmt::format("{} spatial dimensions, the first key has {}", size.size(), dims));
      }
      const Plan plan = plan_for(affine, spacing, size, options_.diagonal);
      if (plan.unchanged) return image;
      return sample_affine(image,
                           plan.matrix,
                           plan.size,
                           of_key(options_.mode, key),
                           of_key(options_.padding_mode, key),
                           at::kDouble,
                           of_key(options_.align_corners, key));
    });
    const Plan plan = plan_for(affine, spacing, first, options_.diagonal);
    if (!plan.unchanged) move_voxels(sample.geometry, plan.matrix);
  }

 private:
  static constexpr double kTolerance = 1e-3;  // MONAI's AFFINE_TOL

  struct Plan {
    at::Tensor matrix;  // from the result's voxels to the image's
    std::vector<int64_t> size;
    bool unchanged;
  };
  /// monai.data.utils.{zoom_affine, compute_shape_offset}.
  static Plan plan_for(const at::Tensor& axes,
                       const std::vector<double>& spacing,
                       const std::vector<int64_t>& image,
                       bool diagonal) {
    const auto n = static_cast<int64_t>(image.size());
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
    Plan plan{{}, {}, true};
    for (int64_t d = 0; d < n; ++d)
      plan.size.push_back(std::llrint(settled(extent[d].item<double>()) + 1));
    const at::Tensor size = at::tensor(plan.size, at::kDouble);
    // The corner below all others stays, when there is one; else the centre.
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
    plan.matrix = at::linalg_solve(axes, target);
    plan.unchanged = plan.size == image && is_identity(plan.matrix);
    return plan;
  }
  Options options_;
};
CYTRA_REGISTER(Transform, Spacingd, "Spacingd");

}  // namespace
}  // namespace cytra::data::spatial
