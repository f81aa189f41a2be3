// CenterSpatialCropd, CenterScaleCropd and CropForegroundd. Source: monai.transforms, the same
// names.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

/// Crops the middle. size_of(an image's size) is the crop's size.
void crop_centers(const KeyOptions& options, Sample& sample, const auto& size_of) {
  options.move_each(sample, [&](const at::Tensor& image, std::size_t, io::Geometry& geometry) {
    const at::IntArrayRef now = image.sizes().slice(1);
    const std::vector<int64_t> size = size_of(now), start = center_start(now, size);
    move_voxels(geometry, {}, {start.begin(), start.end()});
    return crop(image, start, size);
  });
}

struct CenterSpatialCropd : KeyOptions {
  std::vector<int64_t> roi_size;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("roi_size",
      roi_size,
      "voxels of the crop per spatial dimension; <= 0 or beyond the image: the image's size",
      config::required);
  }

  void operator()(Sample& sample) const {
    crop_centers(*this, sample, [&](at::IntArrayRef now) {
      return size_or("CenterSpatialCropd: roi_size", roi_size, now);
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<CenterSpatialCropd>, "CenterSpatialCropd");

struct CenterScaleCropd : KeyOptions {
  std::vector<double> roi_scale;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("roi_scale",
      roi_scale,
      "part of the image's size that the crop has, per spatial dimension",
      config::required);
  }
  void check() const {
    for (const double scale : roi_scale) {
      if (!(scale > 0)) throw ConfigError("roi_scale: expected numbers above 0");
    }
  }

  void operator()(Sample& sample) const {
    crop_centers(*this, sample, [&](at::IntArrayRef now) {
      std::vector<int64_t> size = now.vec();
      const auto scale = per_dim("CenterScaleCropd: roi_scale", roi_scale, size.size());
      for (std::size_t d = 0; d < size.size(); ++d)
        size[d] = static_cast<int64_t>(std::ceil(scale[d] * static_cast<double>(size[d])));
      return size;
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<CenterScaleCropd>, "CenterScaleCropd");

struct CropForegroundd : KeyOptions {
  std::string source_key, select_fn = "> 0";
  std::vector<int64_t> channel_indices, margin{0}, k_divisible{1};
  bool allow_smaller = false;
  std::vector<std::string> mode{"constant"};
  double value = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("source_key", source_key, "the key whose foreground gives the box", config::required);
    v("select_fn", select_fn, "what is foreground", {"> 0"});
    v("channel_indices", channel_indices, "channels of source_key to look at; default: all");
    v("margin", margin, "voxels around the box, per spatial dimension", 0, 1e9);
    v("allow_smaller", allow_smaller, "a margin beyond the image is cut off; false: it is padded");
    v("k_divisible", k_divisible, "the box grows to multiples of this, per spatial dimension");
    v("mode", mode, "padding where the box leaves the image, as in SpatialPadd; or one per key");
    v("value", value, "what mode constant fills in");
    v("constant_values", value, "numpy's name for value");
    v("start_coord_key", config::Unused{}, "the box is not kept");
    v("end_coord_key", config::Unused{}, "the box is not kept");
  }
  void check() const { check_modes("mode", mode, kPadModes, *this); }

  void operator()(Sample& sample) const {
    const Box box = bounding_box(sample.at(source_key), sample.id);
    move_each(sample, [&](const at::Tensor& image, std::size_t key, auto& geometry) {
      if (static_cast<std::size_t>(image.dim() - 1) != box.start.size()) {
        throw DataError(
            "{} spatial dimensions, '{}' has {}", image.dim() - 1, source_key, box.start.size());
      }
      PadWidths widths;
      std::vector<int64_t> start, size;
      for (std::size_t d = 0; d < box.start.size(); ++d) {
        const int64_t n = image.size(static_cast<int64_t>(d) + 1);
        start.push_back(std::max<int64_t>(box.start[d], 0));
        size.push_back(box.end[d] - start[d]);
        widths.emplace_back(std::max<int64_t>(-box.start[d], 0),
                            std::max<int64_t>(box.end[d] - n, 0));
      }
      move_voxels(geometry, {}, {box.start.begin(), box.start.end()});
      return pad(crop(image, start, size), widths, of_key(mode, key), value);
    });
  }

 private:
  struct Box {
    std::vector<int64_t> start, end;  // may reach beyond the image
  };
  Box bounding_box(const at::Tensor& source, const std::string& id) const {
    at::Tensor foreground = source;
    if (!channel_indices.empty()) {
      for (const int64_t channel : channel_indices) {
        if (channel < -source.size(0) || channel >= source.size(0)) {
          throw ConfigError(
              "CropForegroundd: channel_indices: no channel {} in '{}'", channel, source_key);
        }
      }
      at::Tensor index = at::tensor(channel_indices, at::kLong);
      index = at::where(index < 0, index + source.size(0), index);
      foreground = source.index_select(0, index);
    }
    foreground = foreground.gt(0).any(0);
    const auto dims = static_cast<std::size_t>(foreground.dim());
    const auto margins = per_dim("CropForegroundd: margin", margin, dims);
    Box box;
    std::vector<int64_t> size;
    for (std::size_t d = 0; d < dims; ++d) {
      const auto dim = static_cast<int64_t>(d);
      at::Tensor line = foreground;  // where along d there is foreground
      for (int64_t other = foreground.dim() - 1; other >= 0; --other) {
        if (other != dim) line = line.any(other);
      }
      const at::Tensor places = line.nonzero().flatten();
      if (places.numel() == 0) {
        throw DataError("{}: CropForegroundd found nothing above 0 in '{}'", id, source_key);
      }
      int64_t start = places[0].item<int64_t>() - margins[d];
      int64_t end = places[-1].item<int64_t>() + margins[d] + 1;
      if (allow_smaller) {
        start = std::max<int64_t>(start, 0);
        end = std::min<int64_t>(end, foreground.size(dim));
      }
      box.start.push_back(start);
      box.end.push_back(end);
      size.push_back(end - start);
    }
    const auto grown = divisible_size("CropForegroundd: k_divisible", size, k_divisible);
    for (std::size_t d = 0; d < dims; ++d) {
      box.start[d] -= (grown[d] - size[d]) / 2;
      box.end[d] = box.start[d] + grown[d];
    }
    return box;
  }
};
CYTRA_REGISTER(Transform, PerSample<CropForegroundd>, "CropForegroundd");

}  // namespace
}  // namespace cytra::data::spatial
