// RandCropByPosNegLabeld, RandCropByLabelClassesd and RandWeightedCropd: random crops whose centres
// a label or a map of weights chooses. Source: monai.transforms, the same names, and
// monai.transforms.utils.{map_binary_to_indices, correct_crop_centers, weighted_patch_samples}.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"
#include "data/transforms/crop/label_places.h"

namespace cytra::data::spatial {
namespace {

struct CropOptions : KeyOptions {
  std::vector<int64_t> spatial_size;
  int64_t num_samples = 1;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("spatial_size",
      spatial_size,
      "voxels of the crop per spatial dimension; <= 0: the image's size",
      config::required);
    v("num_samples", num_samples, "crops per image", 1, 1e6);
  }
  /// Crops every key to the same box, around a voxel of an image of `shape`.
  void crop_around(Sample& sample,
                   const std::vector<int64_t>& center,
                   at::IntArrayRef shape) const {
    const auto size = size_or("spatial_size", spatial_size, shape);
    std::vector<int64_t> start;
    for (std::size_t d = 0; d < size.size(); ++d)
      start.push_back(std::max<int64_t>(center[d] - size[d] / 2, 0));
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const std::vector<int64_t> own = sample.size(key);
      if (own != shape) {
        throw DataError(
            "{}: '{}': {} voxels, the image that the crop is drawn on has {}; expected the same",
            sample.id,
            key,
            fmt::join(own, "x"),
            fmt::join(shape, "x"));
      }
      sample.crop(key, start, size);
    }
  }
};

/// Which voxels may be centres; used by the crops, and by transforms that list these voxels once
/// for all crops.
struct CenterOptions {
  std::optional<std::string> image_key;
  double image_threshold = 0;
  void visit(auto& v) {
    v("image_key", image_key, "centres lie where this image is above image_threshold");
    v("image_threshold", image_threshold, "see image_key; in the image's intensities");
  }
  /// The places of a label where the image allows a centre.
  Places allowed(Sample& sample, const std::string& label_key, const Places& places) const {
    if (!image_key) return places;
    const at::Tensor& image = sample.at(*image_key);
    if (image.sizes().slice(1) != sample.stored(label_key).sizes().slice(1)) {
      throw DataError(
          "{}: '{}' and '{}' differ in size, expected the same", sample.id, *image_key, label_key);
    }
    return places.within(image.gt(image_threshold).any(0));
  }
};

struct LabelOptions : CropOptions, CenterOptions {
  std::string label_key;
  bool allow_smaller = false;
  void visit(auto& v) {
    CropOptions::visit(v);
    v("label_key", label_key, "the key that chooses the centres", config::required);
    CenterOptions::visit(v);
    v("allow_smaller", allow_smaller, "an image smaller than the crop gives a smaller crop");
  }
  /// Crops around a place of the label; a centre near the border is moved inwards.
  void crop_at(Sample& sample, int64_t place) const {
    const std::vector<int64_t> shape = sample.stored(label_key).sizes().slice(1).vec();
    if (place < 0 || place >= c10::multiply_integers(shape)) {
      throw DataError(
          "{}: voxel {} of a list is beyond '{}', expected a list made right before the crop",
          sample.id,
          place,
          label_key);
    }
    const auto size = size_or("spatial_size", spatial_size, shape);
    std::vector<int64_t> center(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; place /= shape[d]) {
      if (size[d] > shape[d] && !allow_smaller) {
        throw DataError(
            "{}: {} voxels are too few for spatial_size {}; pad them or set allow_smaller",
            sample.id,
            fmt::join(shape, "x"),
            fmt::join(size, "x"));
      }
      const int64_t within = std::min(size[d], shape[d]);
      center[d] = std::clamp(place % shape[d], within / 2, shape[d] - within + within / 2);
    }
    crop_around(sample, center, shape);
  }
};

/// Takes the list of voxels under a key out of the sample. Throws: DataError.
Places take_list(Sample& sample, const std::string& key) {
  const at::Tensor list = sample.stored(key);
  if (list.dim() != 1 || (list.scalar_type() != at::kInt && list.scalar_type() != at::kLong)) {
    throw DataError(
        "{}: '{}' is no list of voxels, expected one of FgBgToIndicesd or ClassesToIndicesd",
        sample.id,
        key);
  }
  sample.tensors.erase(key);
  return Places(list);
}

struct RandCropByPosNegLabeld : LabelOptions {
  double pos = 1, neg = 1;
  std::optional<std::string> fg_indices_key, bg_indices_key;
  void visit(auto& v) {
    LabelOptions::visit(v);
    v("pos", pos, "a centre is in the foreground with probability pos / (pos + neg)", 0, 1e9);
    v("neg", neg, "see pos", 0, 1e9);
    v("fg_indices_key", fg_indices_key, "FgBgToIndicesd's list of the foreground: saves time");
    v("bg_indices_key", bg_indices_key, "its list of the background");
  }
  void check() const {
    if (pos + neg == 0) throw ConfigError("pos and neg are both 0, expected one above");
    if (fg_indices_key.has_value() != bg_indices_key.has_value())
      throw ConfigError("fg_indices_key, bg_indices_key: expected both or none");
  }

  void operator()(Sample& sample, Rng& rng) const {
    Places foreground, background;
    if (fg_indices_key) {
      foreground = take_list(sample, *fg_indices_key);
      background = take_list(sample, *bg_indices_key);
    } else {
      foreground = foreground_of(sample.stored(label_key));
      background = allowed(sample, label_key, foreground.others());
    }
    const uint64_t fg = foreground.count(), bg = background.count();
    if (fg == 0 && bg == 0) {
      throw DataError(
          "{}: no voxel of '{}' is foreground or above image_threshold", sample.id, label_key);
    }
    double ratio = pos / (pos + neg);
    if (fg == 0) ratio = 0;
    if (bg == 0) ratio = 1;
    const bool positive = rng.uniform() < ratio;
    const Places& places = positive ? foreground : background;
    crop_at(sample, places.at(rng.below(places.count())));
  }
};
CYTRA_REGISTER(Transform, PerSample<RandCropByPosNegLabeld>, "RandCropByPosNegLabeld");

constexpr const char* kNumClasses =
    "classes 0..num_classes-1 of a label with one channel; else the channels are the classes";

int64_t classes_of(Sample& sample, const std::string& key, std::optional<int64_t> num_classes) {
  const int64_t channels = sample.stored(key).size(0);
  if (channels > 1) return channels;
  if (!num_classes) {
    throw ConfigError("num_classes must be given: '{}' has one channel", key);
  }
  return *num_classes;
}

struct RandCropByLabelClassesd : LabelOptions {
  std::vector<double> ratios;
  std::optional<int64_t> num_classes;
  std::optional<std::string> indices_key;
  void visit(auto& v) {
    LabelOptions::visit(v);
    v("ratios", ratios, "how often a centre is of each class; default: all alike", 0, 1e9);
    v("num_classes", num_classes, kNumClasses, 1, 1e6);
    v("indices_key", indices_key, "ClassesToIndicesd's lists of the classes: saves time");
    v("max_samples_per_class", config::Unused{}, "every voxel may be drawn, without a list");
    v("warn", config::Unused{}, "of MONAI");
  }

  void operator()(Sample& sample, Rng& rng) const {
    const int64_t classes = classes_of(sample, label_key, num_classes);
    std::vector<double> weights = ratios;
    if (weights.empty()) weights.assign(static_cast<std::size_t>(classes), 1);
    if (std::ssize(weights) != classes) {
      throw ConfigError(
          "RandCropByLabelClassesd: {} ratios for {} classes", weights.size(), classes);
    }
    std::vector<Places> places(weights.size());
    double total = 0;
    for (std::size_t c = 0; c < weights.size(); ++c) {
      const auto number = static_cast<int64_t>(c);
      if (indices_key) {
        places[c] = take_list(sample, fmt::format("{}_{}", *indices_key, c));
      } else if (weights[c] > 0) {
        const Places all = class_of(sample.stored(label_key), number);
        places[c] = allowed(sample, label_key, all);
      }
      if (places[c].count() == 0) weights[c] = 0;  // a missing class is never drawn
      total += weights[c];
    }
    if (total == 0) {
      throw DataError("{}: '{}' holds no class with a ratio above 0", sample.id, label_key);
    }
    double draw = rng.uniform() * total;
    std::size_t chosen = weights.size();
    for (std::size_t c = 0; c < weights.size() && draw >= 0; ++c) {
      if (weights[c] == 0) continue;
      chosen = c;
      draw -= weights[c];
    }
    crop_at(sample, places[chosen].at(rng.below(places[chosen].count())));
  }
};
CYTRA_REGISTER(Transform, PerSample<RandCropByLabelClassesd>, "RandCropByLabelClassesd");

/// Options of transforms that list voxels for the crops above, once for each image.
struct ListOptions : KeyOptions, CenterOptions {
  void visit(auto& v) {
    KeyOptions::visit(v);
    CenterOptions::visit(v);
    v("output_shape", config::Unused{{"null"}}, "places are counted in raster order");
  }
};

struct FgBgToIndicesd : ListOptions {
  std::string fg_postfix = "_fg_indices", bg_postfix = "_bg_indices";
  void visit(auto& v) {
    ListOptions::visit(v);
    v("fg_postfix", fg_postfix, "the foreground of KEY is listed under KEY and this");
    v("bg_postfix", bg_postfix, "likewise the background");
  }

  void operator()(Sample& sample) const {
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const Places foreground = foreground_of(sample.stored(key));
      sample.tensors[key + fg_postfix] = foreground.list();
      sample.tensors[key + bg_postfix] = allowed(sample, key, foreground.others()).list();
    }
  }
};
CYTRA_REGISTER(Transform, PerSample<FgBgToIndicesd>, "FgBgToIndicesd");

struct ClassesToIndicesd : ListOptions {
  std::string indices_postfix = "_cls_indices";
  std::optional<int64_t> num_classes;
  void visit(auto& v) {
    ListOptions::visit(v);
    v("indices_postfix", indices_postfix, "class C of KEY is listed under KEY, this, _ and C");
    v("num_classes", num_classes, kNumClasses, 1, 1e6);
    v("max_samples_per_class", config::Unused{{"null"}}, "every voxel is listed");
  }

  void operator()(Sample& sample) const {
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const int64_t classes = classes_of(sample, key, num_classes);
      for (int64_t c = 0; c < classes; ++c) {
        const Places places = allowed(sample, key, class_of(sample.stored(key), c));
        sample.tensors[fmt::format("{}{}_{}", key, indices_postfix, c)] = places.list();
      }
    }
  }
};
CYTRA_REGISTER(Transform, PerSample<ClassesToIndicesd>, "ClassesToIndicesd");

struct RandWeightedCropd : CropOptions {
  std::string w_key;
  void visit(auto& v) {
    CropOptions::visit(v);
    v("w_key",
      w_key,
      "the key whose first channel weighs the voxels as centres; need not sum to 1",
      config::required);
  }

  void operator()(Sample& sample, Rng& rng) const {
    const at::Tensor weights = sample.at(w_key)[0];
    const std::vector<int64_t> shape = weights.sizes().vec();
    const auto size = size_or("RandWeightedCropd: spatial_size", spatial_size, shape);
    at::Tensor inner = weights;  // the voxels around which a crop is inside the image
    std::vector<int64_t> first;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool fits = shape[d] > size[d];
      first.push_back(fits ? size[d] / 2 : shape[d] / 2);
      inner = inner.narrow(static_cast<int64_t>(d), first[d], fits ? shape[d] - size[d] : 1);
    }
    const std::vector<int64_t> inner_shape = inner.sizes().vec();
    at::Tensor sums = inner.flatten().to(at::kDouble);
    const double low = sums.min().item<double>();
    if (low < 0) sums = sums - low;
    sums = sums.cumsum(0);
    const double* begin = sums.const_data_ptr<double>();
    const double* end = begin + sums.numel();
    const double total = end[-1];
    const double draw = rng.uniform();
    int64_t place = std::isfinite(total) && total > 0
                        ? std::upper_bound(begin, end, draw * total) - begin
                        : static_cast<int64_t>(draw * static_cast<double>(sums.numel()));
    place = std::min(place, sums.numel() - 1);
    std::vector<int64_t> center(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; place /= inner_shape[d])
      center[d] = place % inner_shape[d] + first[d];
    crop_around(sample, center, shape);
  }
};
CYTRA_REGISTER(Transform, PerSample<RandWeightedCropd>, "RandWeightedCropd");

}  // namespace
}  // namespace cytra::data::spatial
