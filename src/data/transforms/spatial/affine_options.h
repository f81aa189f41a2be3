#pragma once
// The common code of Affined, RandAffined and the elastic transforms: options, and the draw of an
// affine matrix. Source: monai.transforms.RandAffineGrid.
#include <ATen/core/Tensor.h>

#include "data/sample/resample.h"
#include "data/sample/spatial_options.h"
#include "data/sample/spline.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {

/// The modes by which images are sampled. `padding` is the default of padding_mode;
/// `with_splines`: a mode may be a number, too.
struct ModeOptions : KeyOptions {
  ModeOptions(const char* padding, bool with_splines)
      : padding_mode{padding}, splines(with_splines) {}
  std::vector<std::string> mode{"bilinear"}, padding_mode;
  bool splines;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("mode",
      mode,
      splines ? "bilinear, nearest for labels, or a spline's order, 0 to 5; one, or one per key"
              : "bilinear, or nearest for labels; one, or one per key");
    v("padding_mode",
      padding_mode,
      "beyond the image: border, zeros or reflection; or one per key");
  }
  void check() const {
    check_modes("mode", mode, splines ? kAffineModes : kSampleModes, *this);
    check_modes("padding_mode", padding_mode, kSamplePadModes, *this);
  }
};

/// The options for sampling images at the points of a grid.
struct SampleOptions : ModeOptions {
  explicit SampleOptions(const char* padding = "reflection", bool with_splines = false)
      : ModeOptions(padding, with_splines) {}
  void visit(auto& v) {
    ModeOptions::visit(v);
    v("device", config::Unused{{"null", "cpu"}}, "transforms run on the CPU");
  }
  /// Changes the geometries by `matrix`, which acts about the images' centres.
  void follow(Sample& sample, const at::Tensor& matrix, at::IntArrayRef size) const {
    for (const std::string& key : keys) {
      const auto place = sample.geometries.find(key);
      if (place == sample.geometries.end() || !sample.has(key)) continue;
      const std::vector<int64_t> image = sample.size(key);
      if (image.size() == size.size())  // else sample_all() throws
        move_voxels(place->second, about_centers(matrix, image, size));
    }
  }
  void sample_all(Sample& sample,
                  const at::Tensor& grid,
                  c10::ScalarType dtype,
                  bool align_corners = false) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry&) {
      if (image.dim() != grid.dim()) {
        throw DataError(
            "{} spatial dimensions, the first key has {}", image.dim() - 1, grid.dim() - 1);
      }
      return sample_grid(
          image, grid, of_key(mode, key), of_key(padding_mode, key), dtype, align_corners);
    });
  }
};

/// The ranges per parameter: [low, high], or a for [-a, a]; parameters after the last given one
/// are not changed.
using Ranges = std::vector<std::vector<double>>;

struct RandAffineOptions : SampleOptions {
  double prob = 0.1;
  Ranges rotate_range, shear_range, translate_range, scale_range;
  std::vector<int64_t> spatial_size;
  void visit(auto& v) {
    SampleOptions::visit(v);
    v("prob", prob, "probability of the transform", 0, 1);
    v("rotate_range",
      rotate_range,
      "radians, per angle [low, high] or a for [-a, a]: one in 2D, in 3D up to three, about each "
      "spatial axis");
    v("shear_range", shear_range, "likewise: two factors in 2D, six in 3D");
    v("translate_range", translate_range, "voxels, likewise: per spatial dimension");
    v("scale_range",
      scale_range,
      "likewise, added to 1: 0.1 and above shows more of the image, smaller");
    v("spatial_size", spatial_size, "voxels of the result; default and <= 0: the image's");
  }
  void check() const {
    SampleOptions::check();
    for (const Ranges* ranges : {&rotate_range, &shear_range, &translate_range, &scale_range}) {
      for (const std::vector<double>& range : *ranges) check_range("a range", range, true);
    }
  }
  /// Checks the options for batches, whose samples keep their size.
  void check_batch() const {
    if (!spatial_size.empty())
      throw ConfigError("spatial_size: a batch keeps its size, crop in data.transforms.train");
  }
  at::Tensor draw_matrix(int64_t dims, Rng& rng) const {
    const auto draw = [&](const Ranges& ranges, double add) {
      std::vector<double> values;
      for (const std::vector<double>& range : ranges)
        values.push_back(Range(range, -range[0]).draw(rng) + add);
      return values;
    };
    AffineParameters parameters;
    parameters.rotate = draw(rotate_range, 0);
    parameters.shear = draw(shear_range, 0);
    parameters.translate = draw(translate_range, 0);
    parameters.scale = draw(scale_range, 1);
    return affine_matrix(dims, parameters);
  }
};

}  // namespace cytra::data::spatial
