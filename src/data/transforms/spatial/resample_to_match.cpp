// ResampleToMatchd: brings images to the voxels of another image of the sample, by where their
// files say that they lie. Source: monai.transforms.ResampleToMatchd.
#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial/affine_options.h"
#include "data/transforms/voxel_axes.h"
#include "io/reader.h"

namespace cytra::data::spatial {
namespace {

class ResampleToMatchd final : public Transform {
 public:
  struct Options : SampleOptions {
    Options() : SampleOptions("border", /*splines=*/true) {}
    std::string key_dst;
    std::vector<bool> align_corners{false};
    template <class V>
    void visit(V& v) {
      SampleOptions::visit(v);
      v("key_dst", key_dst, "key of the image whose voxels all get", config::required);
      v("align_corners", align_corners, "as torch's grid_sample; one, or one per key");
      v("dtype",
        config::Unused{{"float64", "np.float64", "numpy.float64", "torch.float64"}},
        "computed in float64");
    }
    void check() const {
      SampleOptions::check();
      check_per_key("align_corners", align_corners, *this);
    }
  };
  explicit ResampleToMatchd(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    const std::string& target = options_.key_dst;
    if (!sample.has(target) && options_.allow_missing_keys) return;
    const std::vector<int64_t> size = sample.size(target);
    const io::Geometry wanted = geometry_on_file(sample, target);
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t key) {
      const std::string& name = options_.keys[key];
      if (name == target) return image;
      if (image.dim() - 1 != static_cast<int64_t>(size.size())) {
        throw DataError(fmt::format(
            "{} spatial dimensions, '{}' has {}", image.dim() - 1, target, size.size()));
      }
      const io::Geometry given = geometry_on_file(sample, name);
      if ((given.affine == kUnknown) != (wanted.affine == kUnknown))
        throw DataError("it and '" + target + "' need an affine both, or none of them");
      const at::Tensor matrix =
          at::linalg_solve(axes_of(given, size.size()), axes_of(wanted, size.size()));
      if (image.sizes().slice(1) == size && is_identity(matrix)) return image;
      return sample_affine(image,
                           matrix,
                           size,
                           of_key(options_.mode, key),
                           of_key(options_.padding_mode, key),
                           at::kDouble,
                           of_key(options_.align_corners, key));
    });
    sample.geometry = wanted;
  }

 private:
  static constexpr std::array<double, 12> kUnknown{};

  /// A sample keeps one geometry, so each image's own is read again. Whatever has moved voxels
  /// since can't be known but by the size.
  static io::Geometry geometry_on_file(Sample& sample, const std::string& key) {
    const auto source = sample.sources.find(key);
    if (source == sample.sources.end())
      throw DataError(
          fmt::format("{}: '{}' has no file, which tells where it lies", sample.id, key));
    const io::ImageInfo info =
        io::open_image(source->second.path, source->second.selection)->info();
    const std::vector<int64_t> size = sample.size(key);
    if (!std::equal(size.rbegin(), size.rend(), info.shape.rbegin())) {
      throw DataError(fmt::format(
          "{}: '{}' is of {} voxels, its file of {}: put ResampleToMatchd right after "
          "LoadImaged (a level of a pyramid: chosen by the data set, not by LoadImaged)",
          sample.id,
          key,
          fmt::join(size, "x"),
          fmt::join(info.shape.end() - static_cast<int64_t>(size.size()), info.shape.end(), "x")));
    }
    return info.geometry;
  }
  Options options_;
};
CYTRA_REGISTER(Transform, ResampleToMatchd, "ResampleToMatchd");

}  // namespace
}  // namespace cytra::data::spatial
