// RandCropByPosNegLabeld, RandCropByLabelClassesd and RandWeightedCropd: random crops whose centres
// a label or a map of weights chooses. Source: monai.transforms, the same names, and
// monai.transforms.utils.{map_binary_to_indices, correct_crop_centers, weighted_patch_samples}.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/pad_crop.h"
#include "data/transforms/spatial_options.h"

namespace cytra::data::spatial {
namespace {

struct CropOptions : KeyOptions {
  std::vector<int64_t> spatial_size;
  int64_t num_samples = 1;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("spatial_size",
      spatial_size,
      "voxels of the crop per spatial dimension; <= 0: the image's size",
      config::required);
    v("num_samples", num_samples, "crops per image", 1, 1e6);
  }
  /// The same box out of every key, around a voxel of an image of `shape`.
  void crop_around(Sample& sample,
                   const std::vector<int64_t>& center,
                   at::IntArrayRef shape) const {
    const auto size = size_or("spatial_size", spatial_size, shape);
    std::vector<int64_t> start;
    for (std::size_t d = 0; d < size.size(); ++d)
      start.push_back(std::max<int64_t>(center[d] - size[d] / 2, 0));
    for_each(sample, [&](const at::Tensor& image, std::size_t) {
      if (image.sizes().slice(1) != shape) {
        throw DataError(
            fmt::format("{} voxels, the image that the crop is drawn on has {}; expected the same",
                        fmt::join(image.sizes().slice(1), "x"),
                        fmt::join(shape, "x")));
      }
      return crop(image, start, size);
    });
  }
};

struct LabelOptions : CropOptions {
  std::string label_key;
  std::optional<std::string> image_key;
  double image_threshold = 0;
  bool allow_smaller = false;
  template <class V>
  void visit(V& v) {
    CropOptions::visit(v);
    v("label_key", label_key, "the key that chooses the centres", config::required);
    v("image_key", image_key, "centres lie where this image is above image_threshold");
    v("image_threshold", image_threshold, "see image_key; in the image's intensities");
    v("allow_smaller", allow_smaller, "an image smaller than the crop gives a smaller crop");
  }
  /// Where the image allows a centre; undefined: everywhere.
  at::Tensor allowed(Sample& sample) const {
    if (!image_key) return {};
    const at::Tensor& image = sample.at(*image_key);
    if (image.sizes().slice(1) != sample.at(label_key).sizes().slice(1)) {
      throw DataError(fmt::format(
          "{}: '{}' and '{}' differ in size, expected the same", sample.id, *image_key, label_key));
    }
    return image.gt(image_threshold).any(0);
  }
  /// Crops around the n-th voxel of `mask`; a centre near the border moves inwards.
  void crop_at(Sample& sample, const at::Tensor& mask, uint64_t n) const {
    const at::Tensor bytes = mask.contiguous();
    const bool* voxel = bytes.const_data_ptr<bool>();
    int64_t place = 0;
    for (uint64_t skip = n;; ++place) {
      if (voxel[place] && skip-- == 0) break;
    }
    const std::vector<int64_t> shape = mask.sizes().vec();
    const auto size = size_or("spatial_size", spatial_size, shape);
    std::vector<int64_t> center(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; place /= shape[d]) {
      if (size[d] > shape[d] && !allow_smaller) {
        throw DataError(fmt::format(
            "{}: {} voxels are too few for spatial_size {}; pad them or set allow_smaller",
            sample.id,
            fmt::join(shape, "x"),
            fmt::join(size, "x")));
      }
      const int64_t within = std::min(size[d], shape[d]);
      center[d] = std::clamp(place % shape[d], within / 2, shape[d] - within + within / 2);
    }
    crop_around(sample, center, shape);
  }
};

uint64_t count(const at::Tensor& mask) {
  return static_cast<uint64_t>(mask.sum().item<int64_t>());
}

class RandCropByPosNegLabeld final : public Transform {
 public:
  struct Options : LabelOptions {
    double pos = 1, neg = 1;
    template <class V>
    void visit(V& v) {
      LabelOptions::visit(v);
      v("pos", pos, "a centre is in the foreground with probability pos / (pos + neg)", 0, 1e9);
      v("neg", neg, "see pos", 0, 1e9);
      v("fg_indices_key", config::Unused{{"null"}}, "the foreground comes from label_key");
      v("bg_indices_key", config::Unused{{"null"}}, "the background comes from label_key");
    }
    void check() const {
      if (pos + neg == 0) throw ConfigError("pos and neg are both 0, expected one above");
    }
  };
  explicit RandCropByPosNegLabeld(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }
  int64_t num_samples() const override { return options_.num_samples; }

  void apply(Sample& sample, Rng& rng) const override {
    at::Tensor label = sample.at(options_.label_key);
    if (label.size(0) > 1) label = label.slice(0, 1);  // one-hot: the first is the background
    const at::Tensor foreground = label.ne(0).any(0);
    at::Tensor background = foreground.logical_not();
    const at::Tensor allowed = options_.allowed(sample);
    if (allowed.defined()) background = background.logical_and(allowed);
    const uint64_t fg = count(foreground), bg = count(background);
    if (fg == 0 && bg == 0) {
      throw DataError(fmt::format("{}: no voxel of '{}' is foreground or above image_threshold",
                                  sample.id,
                                  options_.label_key));
    }
    double ratio = options_.pos / (options_.pos + options_.neg);
    if (fg == 0) ratio = 0;
    if (bg == 0) ratio = 1;
    const bool positive = rng.uniform() < ratio;
    options_.crop_at(sample, positive ? foreground : background, rng.below(positive ? fg : bg));
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandCropByPosNegLabeld, "RandCropByPosNegLabeld");

class RandCropByLabelClassesd final : public Transform {
 public:
  struct Options : LabelOptions {
    std::vector<double> ratios;
    std::optional<int64_t> num_classes;
    template <class V>
    void visit(V& v) {
      LabelOptions::visit(v);
      v("ratios", ratios, "how often a centre is of each class; default: all alike", 0, 1e9);
      v("num_classes",
        num_classes,
        "classes 0..num_classes-1 of a label with one channel; else the channels are the classes",
        1,
        1e6);
      v("indices_key", config::Unused{{"null"}}, "the classes come from label_key");
      v("max_samples_per_class", config::Unused{}, "every voxel may be drawn, without a list");
      v("warn", config::Unused{}, "of MONAI");
    }
  };
  explicit RandCropByLabelClassesd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }
  int64_t num_samples() const override { return options_.num_samples; }

  void apply(Sample& sample, Rng& rng) const override {
    const at::Tensor label = sample.at(options_.label_key);
    const bool one_hot = label.size(0) > 1;
    if (!one_hot && !options_.num_classes) {
      throw ConfigError(
          fmt::format("RandCropByLabelClassesd: num_classes must be given: '{}' has one channel",
                      options_.label_key));
    }
    const int64_t classes = one_hot ? label.size(0) : *options_.num_classes;
    std::vector<double> ratios = options_.ratios;
    if (ratios.empty()) ratios.assign(static_cast<std::size_t>(classes), 1);
    if (static_cast<int64_t>(ratios.size()) != classes) {
      throw ConfigError(
          fmt::format("RandCropByLabelClassesd: {} ratios for {} classes", ratios.size(), classes));
    }
    const at::Tensor allowed = options_.allowed(sample);
    const auto mask_of = [&](std::size_t c) {
      const auto number = static_cast<int64_t>(c);
      const at::Tensor mask = one_hot ? label[number].ne(0) : label[0].eq(number);
      return allowed.defined() ? mask.logical_and(allowed) : mask;
    };
    std::vector<uint64_t> counts(ratios.size(), 0);
    double total = 0;
    for (std::size_t c = 0; c < ratios.size(); ++c) {
      if (ratios[c] > 0) counts[c] = count(mask_of(c));
      if (counts[c] == 0) ratios[c] = 0;  // a class that is not there is never drawn
      total += ratios[c];
    }
    if (total == 0) {
      throw DataError(fmt::format(
          "{}: '{}' holds no class with a ratio above 0", sample.id, options_.label_key));
    }
    double draw = rng.uniform() * total;
    std::size_t chosen = ratios.size();
    for (std::size_t c = 0; c < ratios.size() && draw >= 0; ++c) {
      if (ratios[c] == 0) continue;
      chosen = c;
      draw -= ratios[c];
    }
    options_.crop_at(sample, mask_of(chosen), rng.below(counts[chosen]));
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandCropByLabelClassesd, "RandCropByLabelClassesd");

class RandWeightedCropd final : public Transform {
 public:
  struct Options : CropOptions {
    std::string w_key;
    template <class V>
    void visit(V& v) {
      CropOptions::visit(v);
      v("w_key",
        w_key,
        "the key whose first channel weighs the voxels as centres; need not sum to 1",
        config::required);
    }
  };
  explicit RandWeightedCropd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }
  int64_t num_samples() const override { return options_.num_samples; }

  void apply(Sample& sample, Rng& rng) const override {
    const at::Tensor weights = sample.at(options_.w_key)[0];
    const std::vector<int64_t> shape = weights.sizes().vec();
    const auto size = size_or("RandWeightedCropd: spatial_size", options_.spatial_size, shape);
    at::Tensor inner = weights;  // the voxels around which a crop lies within the image
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
    options_.crop_around(sample, center, shape);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandWeightedCropd, "RandWeightedCropd");

}  // namespace
}  // namespace cytra::data::spatial
