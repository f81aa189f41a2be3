// Resized, SmallestMaxSized, Zoomd and RandZoomd. Source: monai.transforms, the same names;
// albumentations.SmallestMaxSize.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/gaussian_filter.h"
#include "data/sample/pad_crop.h"
#include "data/sample/resample.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

constexpr const char* kModes =
    "area, nearest, nearest-exact, bilinear (trilinear, linear) or bicubic (planes); one, or one "
    "per "
    "key";

using Sizes = std::vector<int64_t>;

struct InterpolationOptions : KeyOptions {
  std::vector<std::string> mode{"area"};
  std::vector<std::optional<bool>> align_corners{std::nullopt};
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("mode", mode, kModes);
    v("align_corners",
      align_corners,
      "the centres, not the edges, of the outer voxels stay; for the linear modes; or one per key");
  }
  void check() {
    if (align_corners.empty()) align_corners.emplace_back();  // null
    check_modes("mode", mode, kResizeModes, *this);
    check_per_key("align_corners", align_corners, *this);
  }
  at::Tensor to_size(const at::Tensor& image, const Sizes& size, std::size_t key) const {
    return resize(image, size, of_key(mode, key), of_key(align_corners, key).value_or(false));
  }
  /// Changes the geometry as to_size() changes the image.
  void follow(io::Geometry& geometry,
              at::IntArrayRef before,
              const Sizes& after,
              std::size_t key) const {
    std::vector<double> scale, shift;
    for (std::size_t d = 0; d < after.size(); ++d) {
      const auto old = static_cast<double>(before[d]), now = static_cast<double>(after[d]);
      const bool corners = of_key(align_corners, key).value_or(false) && now > 1 && old > 1;
      scale.push_back(corners ? (old - 1) / (now - 1) : old / now);
      shift.push_back(corners ? 0 : (scale[d] - 1) / 2);
    }
    move_voxels(geometry, scale, shift);
  }
};

/// The size scaled in proportion, so that `extreme` voxels become `wanted`.
Sizes scaled(at::IntArrayRef now, int64_t wanted, int64_t extreme) {
  const double scale = static_cast<double>(wanted) / static_cast<double>(extreme);
  Sizes size = now.vec();
  for (int64_t& n : size) n = std::max<int64_t>(std::llrint(static_cast<double>(n) * scale), 1);
  return size;
}

struct Resized : InterpolationOptions {
  Sizes spatial_size;
  std::string size_mode = "all";
  std::vector<bool> anti_aliasing{false};
  std::vector<std::vector<double>> anti_aliasing_sigma;
  void visit(auto& v) {
    InterpolationOptions::visit(v);
    v("spatial_size",
      spatial_size,
      "voxels per spatial dimension; <= 0: the image's; longest: of the longest dimension",
      config::required);
    v("size_mode",
      size_mode,
      "longest: spatial_size is the longest dimension, the others follow",
      {"all", "longest"});
    v("anti_aliasing", anti_aliasing, "smooth before making smaller; or one per key");
    v("anti_aliasing_sigma",
      anti_aliasing_sigma,
      "deviation in voxels of that, a number or one per dimension for each key; default: "
      "(factor - 1) / 2");
  }
  void check() {
    InterpolationOptions::check();
    check_per_key("anti_aliasing", anti_aliasing, *this);
    if (!anti_aliasing_sigma.empty())
      check_per_key("anti_aliasing_sigma", anti_aliasing_sigma, *this);
    if (size_mode == "longest" && (spatial_size.size() != 1 || spatial_size[0] < 1))
      throw ConfigError("spatial_size: expected one number above 0 with size_mode longest");
  }

  void operator()(Sample& sample) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, auto& geometry) {
      const Sizes size = target(image.sizes().slice(1));
      if (image.sizes().slice(1) == at::IntArrayRef(size)) return image;
      follow(geometry, image.sizes().slice(1), size, key);
      return to_size(smooth(image, size, key), size, key);
    });
  }

 private:
  Sizes target(at::IntArrayRef now) const {
    if (size_mode == "all") return size_or("Resized: spatial_size", spatial_size, now);
    return scaled(now, spatial_size[0], *std::ranges::max_element(now));
  }
  at::Tensor smooth(const at::Tensor& image, const Sizes& size, std::size_t key) const {
    if (!of_key(anti_aliasing, key)) return image;
    std::vector<double> sigma(size.size(), 0);
    std::vector<double> given;
    if (!anti_aliasing_sigma.empty()) given = of_key(anti_aliasing_sigma, key);
    if (!given.empty()) given = per_dim("Resized: anti_aliasing_sigma", given, size.size());
    for (std::size_t d = 0; d < size.size(); ++d) {
      const auto now = static_cast<double>(image.size(static_cast<int64_t>(d) + 1));
      const double factor = now / static_cast<double>(size[d]);
      if (factor > 1) sigma[d] = given.empty() ? (factor - 1) / 2 : given[d];
    }
    return gaussian_filter(image, sigma, "erf");
  }
};
CYTRA_REGISTER(Transform, PerSample<Resized>, "Resized");

struct SmallestMaxSized : InterpolationOptions {
  int64_t max_size = 1024;
  void visit(auto& v) {
    InterpolationOptions::visit(v);
    v("max_size", max_size, "voxels of the shortest dimension, the others follow", 1, 1e9);
  }

  void operator()(Sample& sample) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, auto& geometry) {
      const at::IntArrayRef now = image.sizes().slice(1);
      const Sizes size = scaled(now, max_size, *std::ranges::min_element(now));
      follow(geometry, now, size, key);
      return to_size(image, size, key);
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<SmallestMaxSized>, "SmallestMaxSized", "SmallestMaxSize");

struct ZoomOptions : InterpolationOptions {
  bool keep_size = true;
  std::vector<std::string> padding_mode{"edge"};
  double value = 0;
  void visit(auto& v) {
    InterpolationOptions::visit(v);
    v("keep_size", keep_size, "crop or pad the result to the image's size");
    v("padding_mode", padding_mode, "keep_size's padding, as in SpatialPadd; or one per key");
    v("value", value, "what padding_mode constant fills in");
    v("constant_values", value, "numpy's name for value");
  }
  void check() {
    InterpolationOptions::check();
    check_modes("padding_mode", padding_mode, kPadModes, *this);
  }
  /// Zooms every key. factors: one per spatial dimension of the first key; other keys may need a
  /// single number.
  void zoom(Sample& sample, const std::vector<double>& factors) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry& geometry) {
      const Sizes now = image.sizes().slice(1).vec();
      const std::vector<double> factor = per_dim("zoom", factors, now.size());
      Sizes size;
      for (std::size_t d = 0; d < now.size(); ++d) {
        size.push_back(static_cast<int64_t>(std::floor(static_cast<double>(now[d]) * factor[d])));
        if (size[d] < 1) {
          throw DataError(
              "a zoom of {} leaves nothing of {} voxels along dimension {}", factor[d], now[d], d);
        }
      }
      const at::Tensor zoomed = to_size(image, size, key);
      follow(geometry, now, size, key);
      if (!keep_size || size == now) return zoomed;
      const Sizes start = center_start(size, now);
      const at::Tensor cropped = crop(zoomed, start, now);
      const PadWidths widths = widths_to(cropped.sizes().slice(1), now, false);
      std::vector<double> shift;
      for (std::size_t d = 0; d < now.size(); ++d)
        shift.push_back(static_cast<double>(start[d] - widths[d].first));
      move_voxels(geometry, {}, shift);
      return pad(cropped, widths, of_key(padding_mode, key), value);
    });
  }
};

struct Zoomd : ZoomOptions {
  std::vector<double> zoom_factors;
  double spacing_um = 0;
  void visit(auto& v) {
    ZoomOptions::visit(v);
    v("zoom",
      zoom_factors,
      "2: twice as many voxels, of half the size; one, or one per spatial dimension; two for a "
      "stack: of its planes",
      config::required);
    v("spacing_um",
      spacing_um,
      "micrometres between voxels that zoom begins from, by the file's own; the first key's mode "
      "is "
      "area for fewer voxels; 0: zoom begins from the file's voxels",
      0,
      1e9);
  }
  void check() {
    ZoomOptions::check();
    for (const double factor : zoom_factors) {
      if (!(factor > 0)) throw ConfigError("zoom: expected numbers above 0");
    }
  }

  void operator()(Sample& sample) const {
    std::vector<double> factors = zoom_factors;
    ZoomOptions options = *this;
    if (spacing_um > 0) {
      const auto& now = sample.geometry().spacing_um;
      if (factors.size() == 1) factors.resize(first_size(sample).size(), factors[0]);
      for (std::size_t d = 0; d < factors.size(); ++d) {
        const double own = now[3 - factors.size() + d];
        if (!(own > 0))
          throw DataError(
              "the file does not say the distance between voxels, expected data.spacing_um, or "
              "predict.diameter in pixels");
        factors[d] *= own / spacing_um;
      }
      if (factors.back() < 1) options.mode[0] = "area";
    }
    if (factors.size() == 2 && first_size(sample).size() == 3) factors.insert(factors.begin(), 1);
    options.zoom(sample, factors);
  }
};
CYTRA_REGISTER(Transform, PerSample<Zoomd>, "Zoomd");

struct RandZoomd : ZoomOptions {
  double prob = 0.1;
  std::vector<double> min_zoom{0.9}, max_zoom{1.1};
  void visit(auto& v) {
    ZoomOptions::visit(v);
    v("prob", prob, "probability of a zoom", 0, 1);
    v("min_zoom", min_zoom, "smallest factor; one, or one per spatial dimension");
    v("max_zoom", max_zoom, "largest factor; as many numbers as min_zoom");
  }
  void check() {
    ZoomOptions::check();
    if (min_zoom.empty() || min_zoom.size() != max_zoom.size())
      throw ConfigError("min_zoom and max_zoom need equally many numbers");
    for (std::size_t d = 0; d < min_zoom.size(); ++d) {
      if (!(min_zoom[d] > 0) || !(max_zoom[d] >= min_zoom[d]))
        throw ConfigError("min_zoom must be above 0 and at most max_zoom");
    }
  }

  void operator()(Sample& sample, Rng& rng) const {
    if (rng.uniform() >= prob) return;
    std::vector<double> factors;
    for (std::size_t d = 0; d < min_zoom.size(); ++d)
      factors.push_back(rng.uniform(min_zoom[d], max_zoom[d]));
    // Like in the source, the first of two numbers for a volume is for all dimensions except the
    // last.
    if (factors.size() == 2 && first_size(sample).size() == 3)
      factors.insert(factors.begin(), factors[0]);
    zoom(sample, factors);
  }
};
CYTRA_REGISTER(Transform, PerSample<RandZoomd>, "RandZoomd");

}  // namespace
}  // namespace cytra::data::spatial
