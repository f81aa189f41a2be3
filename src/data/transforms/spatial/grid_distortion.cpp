// GridDistortiond and RandGridDistortiond: cells of the image become longer or shorter. Source:
// monai.transforms, the same names.

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial/affine_options.h"
#include "data/transforms/spatial/deform.h"

namespace cytra::data::spatial {
namespace {

constexpr const char* kCells = "cells per spatial dimension, one or one per dimension";
using Steps = std::vector<std::vector<double>>;

/// Distorts each image in cells of its own size, as the source does.
struct DistortOptions : SampleOptions {
  DistortOptions() : SampleOptions("border") {}
  void distort(Sample& sample, const std::vector<int64_t>& cells, const Steps& steps) const {
    at::Tensor grid;
    for_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry&) {
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      if (size.size() != steps.size())
        throw DataError("{} spatial dimensions, the first key has {}", size.size(), steps.size());
      if (!grid.defined() || grid.sizes().slice(1) != at::IntArrayRef(size))
        grid = distort_cells(size, cells, steps);
      return sample_grid(image, grid, of_key(mode, key), of_key(padding_mode, key), at::kDouble);
    });
  }
};

struct GridDistortiond : DistortOptions {
  std::vector<int64_t> num_cells;
  Steps distort_steps;
  void visit(auto& v) {
    SampleOptions::visit(v);
    v("num_cells", num_cells, kCells, config::required);
    v("distort_steps",
      distort_steps,
      "per spatial dimension the factors of the cells' lengths, num_cells + 1 of them",
      config::required);
  }
  void check() const {
    SampleOptions::check();
    for (std::size_t d = 0; d < distort_steps.size(); ++d) {
      if (num_cells.size() > 1 && num_cells.size() != distort_steps.size())
        throw ConfigError("num_cells: expected one number, or as many as distort_steps has lists");
      const int64_t cells = of_key(num_cells, d);
      if (cells < 1) throw ConfigError("num_cells: expected numbers of at least 1");
      if (std::ssize(distort_steps[d]) <= cells)
        throw ConfigError("distort_steps: expected num_cells + 1 factors per spatial dimension");
    }
  }

  void operator()(Sample& sample) const {
    const std::vector<int64_t> size = first_size(sample);
    if (size.empty()) return;
    if (distort_steps.size() != size.size()) {
      throw ConfigError("GridDistortiond: distort_steps has {} lists, {} has {} spatial dimensions",
                        distort_steps.size(),
                        sample.id,
                        size.size());
    }
    const auto cells = per_dim("GridDistortiond: num_cells", num_cells, size.size());
    distort(sample, cells, distort_steps);
  }
};
CYTRA_REGISTER(Transform, PerSample<GridDistortiond>, "GridDistortiond");

struct RandGridDistortiond : DistortOptions {
  std::vector<int64_t> num_cells{5};
  double prob = 0.1;
  std::vector<double> distort_limit{-0.03, 0.03};
  void visit(auto& v) {
    SampleOptions::visit(v);
    v("num_cells", num_cells, kCells, 1, 1e6);
    v("prob", prob, "probability of the transform", 0, 1);
    v("distort_limit",
      distort_limit,
      "[low, high], or a for [-a, a]: what is added to 1 for the factor of a cell's length");
  }
  void check() const {
    SampleOptions::check();
    if (num_cells.empty()) throw ConfigError("num_cells: expected a number");
    check_range("distort_limit", distort_limit, true);
  }

  void operator()(Sample& sample, Rng& rng) const {
    if (rng.uniform() >= prob) return;
    const std::vector<int64_t> size = first_size(sample);
    if (size.empty()) return;
    const auto cells = per_dim("RandGridDistortiond: num_cells", num_cells, size.size());
    const Range limit(distort_limit, -distort_limit[0]);
    Steps steps;
    for (const int64_t count : cells) {
      std::vector<double> factors = limit.draw(rng, count + 1);
      for (double& factor : factors) ++factor;
      steps.push_back(std::move(factors));
    }
    distort(sample, cells, steps);
  }
};
CYTRA_REGISTER(Transform, PerSample<RandGridDistortiond>, "RandGridDistortiond");

}  // namespace
}  // namespace cytra::data::spatial
