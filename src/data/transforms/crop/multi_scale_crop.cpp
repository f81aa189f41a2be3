// RandomMultiScaleCropd: one random box out of images of several resolutions. Source:
// cyto_dl.image.transforms.RandomMultiScaleCropd 0.6.2.
#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

/// Divides as numpy's floor_divide: floor(100 / 0.1) is 1000, but the binary number 0.1 is a
/// little larger, and fits only 999 times.
double floor_divide(double a, double b) {
  return std::round((a - std::fmod(a, b)) / b);
}

struct RandomMultiScaleCropd : KeyOptions {
  std::vector<int64_t> patch_shape;
  config::Node scales_dict;
  int64_t num_samples = 1;
  std::map<std::string, std::vector<double>> scales;  // of scales_dict, per dimension of the patch
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("patch_shape",
      patch_shape,
      "voxels of the crop at scale 1: (Y,X) or (Z,Y,X)",
      config::required);
    v("scales_dict",
      scales_dict,
      "key: its size relative to scale 1, one number or one per dimension of patch_shape",
      config::required);
    v("patch_per_image", num_samples, "crops per image", 1, 1e6);
    v("selection_fn", config::Unused{{"null"}}, "every crop is kept");
    v("max_attempts", config::Unused{}, "every crop is kept");
  }
  void check() {
    if (patch_shape.size() != 2 && patch_shape.size() != 3)
      throw ConfigError("patch_shape: expected 2 or 3 numbers");
    if (*std::ranges::min_element(patch_shape) < 1)
      throw ConfigError("patch_shape: expected numbers of at least 1");
    if (!scales_dict.is_map()) throw ConfigError("scales_dict: expected a map of keys to numbers");
    for (const std::string& key : keys) {
      const config::Node* scale = scales_dict.find_direct(key);
      if (scale == nullptr) throw ConfigError("scales_dict: no scale for the key '{}'", key);
      std::vector<double> numbers = scale->kind == config::Kind::list
                                        ? scale->as<std::vector<double>>()
                                        : std::vector<double>{scale->as<double>()};
      numbers = per_dim("scales_dict", numbers, patch_shape.size());
      for (std::size_t d = 0; d < numbers.size(); ++d) {
        // With less than one voxel the crop would be empty.
        if (!(numbers[d] * static_cast<double>(patch_shape[d]) >= 1)) {
          throw ConfigError(
              "scales_dict: a scale of {} leaves nothing of patch_shape in '{}'", numbers[d], key);
        }
      }
      scales[key] = numbers;
    }
  }

  void operator()(Sample& sample, Rng& rng) const {
    const std::size_t dims = patch_shape.size();
    std::vector<int64_t> starts(dims, INT64_MAX);  // the number of possible first voxels at scale
                                                   // 1
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const at::Tensor& image = sample.stored(key);
      for (std::size_t d = skipped(image, key, sample.id); d < dims; ++d) {
        const double scale = scales.at(key)[d];
        const auto patch = static_cast<double>(patch_shape[d]);
        const auto n =
            static_cast<double>(image.size(image.dim() - static_cast<int64_t>(dims - d)));
        const double room = floor_divide(n, scale) - floor_divide(patch, scale);
        const double inside = std::floor((n - std::floor(patch * scale)) / scale);
        if (room < 0 || inside < 0) {
          throw DataError(
              "{}: '{}' has {} voxels along spatial dimension {}, too few for patch_shape {} at "
              "scale {}",
              sample.id,
              key,
              n,
              d,
              patch,
              scale);
        }
        // Like in the source, the last place is never drawn. `inside` binds above scale 1 only,
        // where the source would return crops that are cut off.
        const auto possible = static_cast<int64_t>(std::min(room, inside + 1));
        starts[d] = std::min(starts[d], std::max<int64_t>(possible, 1));
      }
    }
    std::vector<double> start;
    for (const int64_t possible : starts)
      start.push_back(static_cast<double>(rng.below(static_cast<uint64_t>(possible))));
    move_each(sample, [&](const at::Tensor& image, std::size_t k, auto& geometry) {
      const std::string& key = keys[k];
      std::vector<int64_t> first, size;
      for (std::size_t d = skipped(image, key, sample.id); d < dims; ++d) {
        const double scale = scales.at(key)[d];
        first.push_back(static_cast<int64_t>(start[d] * scale));
        size.push_back(static_cast<int64_t>(static_cast<double>(patch_shape[d]) * scale));
      }
      move_voxels(geometry, {}, {first.begin(), first.end()});
      return crop(image, first, size);
    });
  }

 private:
  /// The number of the patch's dimensions that the image does not have: a plane uses (Y,X) of a 3D
  /// patch.
  std::size_t skipped(const at::Tensor& image,
                      const std::string& key,
                      const std::string& id) const {
    const auto dims = std::ssize(patch_shape);
    const int64_t missing = dims - (image.dim() - 1);
    if (missing >= 0 && missing <= 1 && dims - missing >= 2)
      return static_cast<std::size_t>(missing);
    throw DataError(
        "{}: '{}' has {} spatial dimensions, patch_shape {}", id, key, image.dim() - 1, dims);
  }
};
CYTRA_REGISTER(Transform, PerSample<RandomMultiScaleCropd>, "RandomMultiScaleCropd");

}  // namespace
}  // namespace cytra::data::spatial
