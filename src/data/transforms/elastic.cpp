// Rand2DElasticd and Rand3DElasticd: smooth random deformations. Source: monai.transforms, the same
// names.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/affine_options.h"
#include "data/transforms/deform.h"

namespace cytra::data::spatial {
namespace {

struct ElasticOptions : RandAffineOptions {
  std::vector<double> magnitude_range;
  template <class V>
  void visit(V& v) {
    RandAffineOptions::visit(v);
    v("magnitude_range",
      magnitude_range,
      "[low, high] of the factor of the random offsets, in voxels",
      config::required);
  }
  void check() const {
    RandAffineOptions::check();
    if (magnitude_range.size() != 2) throw ConfigError("magnitude_range: expected [low, high]");
  }
  /// The size of the result when there is something to do; `chosen`: the draw says so. Throws:
  /// DataError when the images are not of `dims`.
  std::vector<int64_t> size_for(Sample& sample, std::size_t dims, bool chosen) const {
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return {};
    if (image.size() != dims) {
      throw DataError(fmt::format("{}: {} spatial dimensions, the elastic transform is for {}",
                                  sample.id,
                                  image.size(),
                                  dims));
    }
    std::vector<int64_t> size = size_or("spatial_size", spatial_size, image);
    if (!chosen && size == image) size.clear();
    return size;
  }
};

class Rand2DElasticd final : public Transform {
 public:
  struct Options : ElasticOptions {
    std::vector<double> spacing;
    template <class V>
    void visit(V& v) {
      ElasticOptions::visit(v);
      v("spacing",
        spacing,
        "voxels between the points that move, one or per spatial dimension",
        config::required);
    }
    void check() const {
      ElasticOptions::check();
      for (const double distance : spacing) {
        if (!(distance >= 1)) throw ConfigError("spacing: expected numbers of at least 1");
      }
    }
  };
  explicit Rand2DElasticd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }

  void apply(Sample& sample, Rng& rng) const override {
    const bool chosen = rng.uniform() < options_.prob;
    const std::vector<int64_t> size = options_.size_for(sample, 2, chosen);
    if (size.empty()) return;
    at::Tensor grid;
    if (chosen) {
      const auto spacing = per_dim("Rand2DElasticd: spacing", options_.spacing, 2);
      const std::vector<int64_t> points = control_points(size, spacing);
      at::Tensor offset = at::empty({2, points[0], points[1]}, at::kFloat);
      auto* value = offset.mutable_data_ptr<float>();
      for (int64_t i = 0; i < offset.numel(); ++i) value[i] = static_cast<float>(rng.normal());
      const double magnitude =
          rng.uniform(options_.magnitude_range[0], options_.magnitude_range[1]);
      grid = deform_2d(size, spacing, offset * magnitude, options_.draw_matrix(2, rng));
    } else {
      grid = identity_grid(size, at::kDouble);
    }
    options_.sample_all(sample, grid, at::kDouble);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, Rand2DElasticd, "Rand2DElasticd");

class Rand3DElasticd final : public Transform {
 public:
  struct Options : ElasticOptions {
    std::vector<double> sigma_range;
    template <class V>
    void visit(V& v) {
      ElasticOptions::visit(v);
      v("sigma_range",
        sigma_range,
        "[low, high] of the deviation in voxels that smooths the random offsets",
        config::required);
    }
    void check() const {
      ElasticOptions::check();
      if (sigma_range.size() != 2 || sigma_range[0] < 0 || sigma_range[1] < sigma_range[0])
        throw ConfigError("sigma_range: expected [low, high], both at least 0");
    }
  };
  explicit Rand3DElasticd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }

  void apply(Sample& sample, Rng& rng) const override {
    const bool chosen = rng.uniform() < options_.prob;
    const std::vector<int64_t> size = options_.size_for(sample, 3, chosen);
    if (size.empty()) return;
    at::Tensor grid;
    if (chosen) {
      const double magnitude =
          rng.uniform(options_.magnitude_range[0], options_.magnitude_range[1]);
      const double sigma = rng.uniform(options_.sigma_range[0], options_.sigma_range[1]);
      const at::Tensor matrix = options_.draw_matrix(3, rng);
      at::Tensor offset = at::empty({3, size[0], size[1], size[2]}, at::kFloat);
      auto* value = offset.mutable_data_ptr<float>();
      for (int64_t i = 0; i < offset.numel(); ++i)
        value[i] = static_cast<float>(rng.uniform(-1, 1));
      grid = deform_3d(offset, sigma, magnitude, matrix);
    } else {
      grid = identity_grid(size, at::kDouble);
    }
    options_.sample_all(sample, grid, at::kDouble);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, Rand3DElasticd, "Rand3DElasticd");

}  // namespace
}  // namespace cytra::data::spatial
