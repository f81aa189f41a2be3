// Flipd, RandAxisFlipd and Rotate90d: exact turns and mirrors. Source: monai.transforms, the same
// names.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial_options.h"
#include "data/transforms/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

class Flipd final : public Transform {
 public:
  struct Options : KeyOptions {
    std::vector<int64_t> spatial_axis;
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("spatial_axis", spatial_axis, "spatial axes to flip (0 is the first after C); empty: all");
    }
  };
  explicit Flipd(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    const auto flipped = [&](int64_t dims) {
      std::vector<int64_t> axes = options_.spatial_axis;
      if (axes.empty()) {
        for (int64_t axis = 0; axis < dims; ++axis) axes.push_back(axis);
      }
      return tensor_dims("Flipd: spatial_axis", axes, dims);
    };
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t) {
      return image.flip(flipped(image.dim() - 1));
    });
    const std::vector<int64_t> size = options_.first_size(sample);
    if (size.empty()) return;
    std::vector<double> scale(size.size(), 1), shift(size.size(), 0);
    for (const int64_t dim : flipped(static_cast<int64_t>(size.size()))) {
      const auto d = static_cast<std::size_t>(dim - 1);
      scale[d] = -1;
      shift[d] = static_cast<double>(size[d] - 1);
    }
    move_voxels(sample.geometry, scale, shift);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, Flipd, "Flipd");

class RandAxisFlipd final : public Transform {
 public:
  struct Options : KeyOptions {
    double prob = 0.1;
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("prob", prob, "probability of a flip along one axis, drawn from all", 0, 1);
    }
  };
  explicit RandAxisFlipd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }

  void apply(Sample& sample, Rng& rng) const override {
    const std::size_t dims = options_.first_size(sample).size();
    if (rng.uniform() >= options_.prob || dims == 0) return;
    const std::vector<int64_t> axis{static_cast<int64_t>(rng.below(dims))};
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t) {
      return image.flip(tensor_dims("RandAxisFlipd", axis, image.dim() - 1));
    });
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandAxisFlipd, "RandAxisFlipd");

class Rotate90d final : public Transform {
 public:
  struct Options : KeyOptions {
    int64_t k = 1;
    std::vector<int64_t> spatial_axes{0, 1};
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("k", k, "turns by 90 degrees");
      v("spatial_axes", spatial_axes, "the plane of the turn: from the first to the second axis");
    }
    void check() const {
      if (spatial_axes.size() != 2 || spatial_axes[0] == spatial_axes[1])
        throw ConfigError("Rotate90d: spatial_axes needs two different axes");
    }
  };
  explicit Rotate90d(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    std::vector<int64_t> size = options_.first_size(sample);
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t) {
      const int64_t dims = image.dim() - 1;
      return image.rot90(options_.k,
                         tensor_dims("Rotate90d: spatial_axes", options_.spatial_axes, dims));
    });
    if (size.empty()) return;
    const auto dims = static_cast<int64_t>(size.size());
    const auto axes = tensor_dims("Rotate90d: spatial_axes", options_.spatial_axes, dims);
    const int64_t a = axes[0] - 1, b = axes[1] - 1;
    for (int64_t turn = 0; turn < (options_.k % 4 + 4) % 4; ++turn) {
      // result[i, j] = image[j, n_b - 1 - i]
      at::Tensor matrix = at::eye(dims + 1, at::kDouble);
      matrix[a][a] = matrix[b][b] = 0;
      matrix[a][b] = 1;
      matrix[b][a] = -1;
      matrix[b][dims] = static_cast<double>(size[static_cast<std::size_t>(b)] - 1);
      move_voxels(sample.geometry, matrix);
      std::swap(size[static_cast<std::size_t>(a)], size[static_cast<std::size_t>(b)]);
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, Rotate90d, "Rotate90d");

}  // namespace
}  // namespace cytra::data::spatial
