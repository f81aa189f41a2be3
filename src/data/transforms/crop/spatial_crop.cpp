// SpatialCropd and the random crops. Source: monai.transforms.{SpatialCropd, RandSpatialCropd,
// RandSpatialCropSamplesd}.
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"

namespace cytra::data::spatial {
namespace {

/// Crops every key to the same box. start, size: per spatial dimension.
void crop_all(const KeyOptions& options,
              Sample& sample,
              const std::vector<int64_t>& start,
              const std::vector<int64_t>& size) {
  for (const std::string& key : options.keys) {
    if (options.skips(sample, key)) continue;
    const std::vector<int64_t> own = sample.size(key);
    for (std::size_t d = 0; d < start.size(); ++d) {
      if (start[d] + size[d] <= own.at(d)) continue;
      throw DataError(
          "{}: '{}': smaller ({} along spatial dimension {}) than '{}': images of one sample must "
          "have one size",
          sample.id,
          key,
          own[d],
          d,
          options.keys.front());
    }
    sample.crop(key, start, size);
  }
}

struct SpatialCropd : KeyOptions {
  std::vector<int64_t> roi_start, roi_end, roi_center, roi_size;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("roi_start", roi_start, "first voxel, per spatial dimension");
    v("roi_end", roi_end, "one past the last voxel; clipped to the image");
    v("roi_center",
      roi_center,
      "instead of roi_start and roi_end: the voxel in the middle, with roi_size");
    v("roi_size", roi_size, "voxels around roi_center; beyond the image: moved into its start");
  }
  void check() {
    const bool has_bounds = !roi_start.empty() || !roi_end.empty();
    const bool has_center = !roi_center.empty() || !roi_size.empty();
    if (has_bounds == has_center)
      throw ConfigError("expected roi_start and roi_end, or roi_center and roi_size");
    if (!has_center) return;
    if (roi_center.size() != roi_size.size())
      throw ConfigError("roi_center and roi_size: expected a number per spatial dimension");
    for (std::size_t d = 0; d < roi_size.size(); ++d) {
      roi_start.push_back(std::max<int64_t>(roi_center[d] - roi_size[d] / 2, 0));
      roi_end.push_back(roi_start[d] + std::max<int64_t>(roi_size[d], 0));
    }
  }

  void operator()(Sample& sample) const {
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return;
    if (roi_start.size() != image.size() || roi_end.size() != image.size()) {
      throw ConfigError(
          "SpatialCropd: roi_start and roi_end need {} numbers for {}", image.size(), sample.id);
    }
    std::vector<int64_t> start, size;
    for (std::size_t d = 0; d < image.size(); ++d) {
      start.push_back(std::clamp<int64_t>(roi_start[d], 0, image[d]));
      size.push_back(std::clamp<int64_t>(roi_end[d], start[d], image[d]) - start[d]);
      if (size[d] == 0)
        throw DataError("{}: SpatialCropd leaves nothing along dimension {}", sample.id, d);
    }
    crop_all(*this, sample, start, size);
  }
};
CYTRA_REGISTER(Transform, PerSample<SpatialCropd>, "SpatialCropd");

struct RandSpatialCropSamplesd : KeyOptions {
  std::vector<int64_t> roi_size, max_roi_size;
  int64_t num_samples = 1;
  bool random_center = true, random_size = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("roi_size",
      roi_size,
      "voxels of the crop per spatial dimension; <= 0 or beyond the image: the image's size",
      config::required);
    v("num_samples", num_samples, "crops per image", 1, 1e6);
    v("random_center", random_center, "false: around the image's centre");
    v("random_size",
      random_size,
      "the size is drawn from roi_size to max_roi_size: pad afterwards, or batches of 1");
    v("max_roi_size",
      max_roi_size,
      "with random_size: the largest crop; default and <= 0: the image's size");
  }

  void operator()(Sample& sample, Rng& rng) const {
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return;
    std::vector<int64_t> roi = size_of("roi_size", roi_size, image);
    if (random_size) {
      const std::vector<int64_t> most = size_of("max_roi_size", max_roi_size, image);
      for (std::size_t d = 0; d < image.size(); ++d) {
        if (roi[d] > most[d])
          throw ConfigError("random crop: max_roi_size is below roi_size, expected at least that");
        roi[d] += static_cast<int64_t>(rng.below(static_cast<uint64_t>(most[d] - roi[d] + 1)));
      }
    }
    std::vector<int64_t> start;
    for (std::size_t d = 0; d < image.size(); ++d) {
      start.push_back(random_center ? static_cast<int64_t>(
                                          rng.below(static_cast<uint64_t>(image[d] - roi[d] + 1)))
                                    : image[d] / 2 - roi[d] / 2);
    }
    crop_all(*this, sample, start, roi);
  }

 private:
  /// The size of the crop, at most the image's.
  static std::vector<int64_t> size_of(const char* place,
                                      const std::vector<int64_t>& given,
                                      const std::vector<int64_t>& image) {
    std::vector<int64_t> size = size_or(place, given, image);
    for (std::size_t d = 0; d < image.size(); ++d) size[d] = std::min(size[d], image[d]);
    return size;
  }
};
CYTRA_REGISTER(Transform,
               PerSample<RandSpatialCropSamplesd>,
               "RandSpatialCropSamplesd",
               "RandSpatialCropd");

}  // namespace
}  // namespace cytra::data::spatial
