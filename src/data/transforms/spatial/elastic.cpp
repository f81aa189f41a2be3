// Rand2DElasticd and Rand3DElasticd: smooth random deformations. Source: monai.transforms, the same
// names.
#include <ATen/ATen.h>

#include "base/lists.h"
#include "config/registry.h"
#include "data/batch_transforms/batch_grid.h"
#include "data/batch_transforms/per_batch.h"
#include "data/sample/pad_crop.h"
#include "data/transforms/spatial/affine_options.h"
#include "data/transforms/spatial/deform.h"

namespace cytra::data::spatial {
namespace {

struct ElasticOptions : RandAffineOptions {
  std::vector<double> magnitude_range;
  void visit(auto& v) {
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
  /// Samples images of `dims` at the grid that deformed(their size) draws.
  void deform(Sample& sample, Rng& rng, std::size_t dims, const auto& deformed) const {
    const bool chosen = rng.uniform() < prob;
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return;
    if (image.size() != dims) {
      throw DataError("{}: {} spatial dimensions, the elastic transform is for {}",
                      sample.id,
                      image.size(),
                      dims);
    }
    const std::vector<int64_t> size = size_or("spatial_size", spatial_size, image);
    if (!chosen && size == image) return;
    sample_all(sample, chosen ? deformed(size) : identity_grid(size), at::kDouble);
  }
};

struct Rand2DElasticd : ElasticOptions {
  std::vector<double> spacing;
  void visit(auto& v) {
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

  void operator()(Sample& sample, Rng& rng) const {
    deform(sample, rng, 2, [&](const std::vector<int64_t>& size) {
      const auto distances = per_dim("Rand2DElasticd: spacing", spacing, 2);
      const std::vector<int64_t> points = control_points(size, distances);
      at::Tensor offset = at::empty({2, points[0], points[1]}, at::kFloat);
      auto* value = offset.mutable_data_ptr<float>();
      for (int64_t i = 0; i < offset.numel(); ++i) value[i] = static_cast<float>(rng.normal());
      const double magnitude = rng.uniform(magnitude_range[0], magnitude_range[1]);
      return deform_2d(size, distances, offset * magnitude, draw_matrix(2, rng));
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<Rand2DElasticd>, "Rand2DElasticd");

struct Rand3DElasticd : ElasticOptions {
  std::vector<double> sigma_range;
  void visit(auto& v) {
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

  void operator()(Sample& sample, Rng& rng) const {
    deform(sample, rng, 3, [&](const std::vector<int64_t>& size) {
      const double magnitude = rng.uniform(magnitude_range[0], magnitude_range[1]);
      const double sigma = rng.uniform(sigma_range[0], sigma_range[1]);
      const at::Tensor matrix = draw_matrix(3, rng);
      at::Tensor offset = at::empty({3, size[0], size[1], size[2]}, at::kFloat);
      auto* value = offset.mutable_data_ptr<float>();
      for (int64_t i = 0; i < offset.numel(); ++i)
        value[i] = static_cast<float>(rng.uniform(-1, 1));
      return deform_3d(offset, sigma, magnitude, matrix);
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<Rand3DElasticd>, "Rand3DElasticd");

/// The numbers that one sample of a batch draws.
struct Drawn {
  Rng::Span offsets;
  double magnitude, sigma;
  at::Tensor matrix;
};

at::Tensor matrices_of(const std::vector<Drawn>& drawn, const at::TensorOptions& options) {
  return to_device(at::stack(mapped(drawn, &Drawn::matrix)), options.device()).to(options);
}

template <class T>
struct BatchElastic : T {
  void check() const {
    T::check();
    this->check_batch();
  }
  static void check_dims(std::size_t now, std::size_t dims) {
    if (now == dims) return;
    throw DataError("{} spatial dimensions, the elastic transform is for {}", now, dims);
  }
  static std::vector<Rng::Span> offsets_of(const std::vector<Drawn>& drawn) {
    return mapped(drawn, &Drawn::offsets);
  }
  static at::Tensor magnitudes(const std::vector<Drawn>& drawn, const at::Tensor& images) {
    return per_sample(mapped(drawn, &Drawn::magnitude), images);
  }
  at::TensorOptions grid_options(const at::Tensor& images, std::size_t key) const {
    return images.options().dtype(grid_type(of_key(this->mode, key)));
  }
};

struct BatchElastic2D : BatchElastic<Rand2DElasticd> {
  Drawn draw_one(Rng& rng, at::IntArrayRef image) const {
    check_dims(image.size() - 1, 2);
    Drawn drawn{};
    const auto points = control_points(image.slice(1).vec(), per_dim("spacing", spacing, 2));
    drawn.offsets = rng.take(static_cast<uint64_t>(2 * 2 * points[0] * points[1]));
    drawn.magnitude = rng.uniform(magnitude_range[0], magnitude_range[1]);
    drawn.matrix = draw_matrix(2, rng);
    return drawn;
  }
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<Drawn>& drawn,
                      std::size_t key) const {
    check_dims(static_cast<std::size_t>(images.dim()) - 2, 2);
    const std::vector<int64_t> size = images.sizes().slice(2).vec();
    const auto distance = per_dim("spacing", spacing, 2);
    const auto points = control_points(size, distance);
    const int64_t count = 2 * points[0] * points[1];
    const at::TensorOptions options = grid_options(images, key);
    const at::Tensor offsets = normals(offsets_of(drawn), count, images.device())
                                   .to(options)
                                   .reshape({-1, 2, points[0], points[1]}) *
                               magnitudes(drawn, images);
    std::vector<at::Tensor> coarse = voxel_points(points, options);
    std::vector<int64_t> fine;
    for (std::size_t d = 0; d < 2; ++d) {
      coarse[d] = coarse[d] * distance[d] + offsets.select(1, static_cast<int64_t>(d));
      fine.push_back(fine_size(points[d], distance[d]));
    }
    at::Tensor grid = transform_points(matrices_of(drawn, options), coarse);
    grid = at::upsample_bicubic2d(grid, fine, /*align_corners=*/false);
    const auto start = center_start(fine, size);
    grid = grid.narrow(2, start[0], size[0]).narrow(3, start[1], size[1]);
    return sample_batch(images, grid, of_key(mode, key), of_key(padding_mode, key));
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchElastic2D>, "Rand2DElasticd");

struct BatchElastic3D : BatchElastic<Rand3DElasticd> {
  Drawn draw_one(Rng& rng, at::IntArrayRef image) const {
    check_dims(image.size() - 1, 3);
    Drawn drawn{};
    drawn.magnitude = rng.uniform(magnitude_range[0], magnitude_range[1]);
    drawn.sigma = rng.uniform(sigma_range[0], sigma_range[1]);
    drawn.matrix = draw_matrix(3, rng);
    drawn.offsets = rng.take(static_cast<uint64_t>(3 * c10::multiply_integers(image.slice(1))));
    return drawn;
  }
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<Drawn>& drawn,
                      std::size_t key) const {
    check_dims(static_cast<std::size_t>(images.dim()) - 2, 3);
    std::vector<int64_t> shape = images.sizes().vec();
    shape[1] = 3;
    std::vector<std::vector<double>> sigmas;
    for (const Drawn& one : drawn) sigmas.emplace_back(3, one.sigma);
    const at::TensorOptions options = grid_options(images, key);
    const at::Tensor random =
        uniforms(offsets_of(drawn), c10::multiply_integers(shape) / shape[0], images.device());
    const at::Tensor offsets =
        filter_batch((random * 2 - 1).to(options).reshape(shape), sigmas, "erf", 3) *
        magnitudes(drawn, images);
    std::vector<at::Tensor> points = voxel_points(images.sizes().slice(2), options);
    for (std::size_t d = 0; d < 3; ++d)
      points[d] = points[d] + offsets.select(1, static_cast<int64_t>(d));
    return sample_batch(images,
                        transform_points(matrices_of(drawn, options), points),
                        of_key(mode, key),
                        of_key(padding_mode, key));
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchElastic3D>, "Rand3DElasticd");

}  // namespace
}  // namespace cytra::data::spatial
