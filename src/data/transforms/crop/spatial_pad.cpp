// SpatialPadd, BorderPadd, DivisiblePadd and ResizeWithPadOrCropd. Source: monai.transforms, the
// same names.
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

struct PadOptions : KeyOptions {
  std::vector<std::string> mode{"constant"};
  double value = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("mode",
      mode,
      "constant, edge (replicate), reflect, symmetric or wrap (circular); one, or one per key");
    v("value", value, "what mode constant fills in");
    v("constant_values", value, "numpy's name for value");
  }
  void check() const { check_modes("mode", mode, kPadModes, *this); }
  /// Pads every key. widths_of(an image's size) is the padding of it.
  void pad_all(Sample& sample, const auto& widths_of) const {
    if (is_large_enough(sample, widths_of)) return;
    move_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry& geometry) {
      const PadWidths widths = widths_of(image.sizes().slice(1));
      std::vector<double> shift;
      for (const auto& [before, after] : widths) shift.push_back(-static_cast<double>(before));
      move_voxels(geometry, {}, shift);
      return pad(image, widths, of_key(mode, key), value);
    });
  }

 private:
  /// Whether no key gets a voxel: then images that are not read yet need not be read.
  bool is_large_enough(Sample& sample, const auto& widths_of) const {
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const std::vector<int64_t> size = sample.size(key);
      for (const auto& [before, after] : widths_of(at::IntArrayRef(size))) {
        if (before > 0 || after > 0) return false;
      }
    }
    return true;
  }
};

struct MethodOptions : PadOptions {
  std::string method = "symmetric";
  void visit(auto& v) {
    PadOptions::visit(v);
    v("method", method, "pad on both sides, or at the end only", {"symmetric", "end"});
  }
  /// Pads every key up to size_of(its own size).
  void pad_to(Sample& sample, const auto& size_of) const {
    pad_all(sample,
            [&](at::IntArrayRef now) { return widths_to(now, size_of(now), method == "end"); });
  }
};

struct SpatialPadd : MethodOptions {
  std::vector<int64_t> spatial_size;
  void visit(auto& v) {
    MethodOptions::visit(v);
    v("spatial_size",
      spatial_size,
      "voxels per spatial dimension to pad up to; <= 0: leave that dimension",
      config::required);
  }

  void operator()(Sample& sample) const {
    pad_to(sample, [&](at::IntArrayRef now) {
      return size_or("SpatialPadd: spatial_size", spatial_size, now);
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<SpatialPadd>, "SpatialPadd");

struct BorderPadd : PadOptions {
  std::vector<int64_t> spatial_border;
  void visit(auto& v) {
    PadOptions::visit(v);
    v("spatial_border",
      spatial_border,
      "voxels to add: one number, one per dimension (both sides), or two (before, after)",
      config::required);
  }

  void operator()(Sample& sample) const {
    pad_all(sample, [&](at::IntArrayRef now) {
      std::vector<int64_t> border = spatial_border;
      for (int64_t& width : border) width = std::max<int64_t>(width, 0);
      PadWidths widths;
      if (border.size() == 2 * now.size()) {
        for (std::size_t i = 0; i < border.size(); i += 2)
          widths.emplace_back(border[i], border[i + 1]);
      } else {
        for (const int64_t width : per_dim("BorderPadd: spatial_border", border, now.size()))
          widths.emplace_back(width, width);
      }
      return widths;
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<BorderPadd>, "BorderPadd");

struct DivisiblePadd : MethodOptions {
  std::vector<int64_t> k;
  void visit(auto& v) {
    MethodOptions::visit(v);
    v("k", k, "sizes become multiples of this, per spatial dimension", config::required);
  }

  void operator()(Sample& sample) const {
    pad_to(sample, [&](at::IntArrayRef now) { return divisible_size("DivisiblePadd: k", now, k); });
  }
};
CYTRA_REGISTER(Transform, PerSample<DivisiblePadd>, "DivisiblePadd");

struct ResizeWithPadOrCropd : MethodOptions {
  std::vector<int64_t> spatial_size;
  void visit(auto& v) {
    MethodOptions::visit(v);
    v("spatial_size",
      spatial_size,
      "voxels per spatial dimension, by a crop of the centre or padding; <= 0: as it is",
      config::required);
  }

  void operator()(Sample& sample) const {
    const auto size_of = [&](at::IntArrayRef now) {
      return size_or("ResizeWithPadOrCropd: spatial_size", spatial_size, now);
    };
    move_each(sample, [&](const at::Tensor& image, std::size_t, auto& geometry) {
      const std::vector<int64_t> size = size_of(image.sizes().slice(1)),
                                 start = center_start(image.sizes().slice(1), size);
      move_voxels(geometry, {}, {start.begin(), start.end()});
      return crop(image, start, size);
    });
    pad_to(sample, size_of);  // a size <= 0 means the image's present size
  }
};
CYTRA_REGISTER(Transform, PerSample<ResizeWithPadOrCropd>, "ResizeWithPadOrCropd");

}  // namespace
}  // namespace cytra::data::spatial
