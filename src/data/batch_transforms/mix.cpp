// MixUpd and CutMixd: samples of a batch mixed with each other; CutOutd: boxes of 0. Source:
// monai.transforms, the same names; Zhang et al. 2018, Yun et al. 2019, DeVries & Taylor 2017.
// Each sample draws its own weight and box (MONAI: one corner for the whole batch), and is never
// mixed with itself in a batch of two or more.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/batch_transforms/per_batch.h"

namespace cytra::data {
namespace {

/// Draws a gamma value (Marsaglia and Tsang 2000); for shapes below 1, the value of shape + 1 is
/// multiplied by a power of a uniform value.
double draw_gamma(Rng& rng, double shape) {
  if (shape < 1) return draw_gamma(rng, shape + 1) * std::pow(1 - rng.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v;
  }
}

double draw_beta(Rng& rng, double alpha) {
  const double a = draw_gamma(rng, alpha), b = draw_gamma(rng, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;  // both too small for a double
}

/// Draws the partner that each sample is mixed with: the next one in a random order of the batch,
/// which does not depend on the samples' order.
std::vector<int64_t> draw_partners(std::vector<Rng>& rngs) {
  std::vector<uint64_t> places;
  for (Rng& rng : rngs) places.push_back(rng.next());
  std::vector<std::size_t> order(rngs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<int64_t> partners(rngs.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    partners[order[i]] = static_cast<int64_t>(order[(i + 1) % order.size()]);
  return partners;
}

struct MixOptions {
  std::vector<std::string> keys;
  double alpha = 1;
  bool allow_missing_keys = false;
  void visit(auto& v) {
    v("keys", keys, "samples' keys to mix alike, images and labels", config::required);
    v("alpha",
      alpha,
      "weights are drawn from the distribution Beta(alpha, alpha); 1: uniform",
      1e-3,
      1e3);
    v("allow_missing_keys", allow_missing_keys, "skip a key the batch does not have");
    v("batch_size", config::Unused{}, "the batch has its size");
  }
  /// Applies images = changed(images) for each key.
  void for_each(Batch& batch, const auto& changed) const {
    for (const std::string& key : keys) {
      if (allow_missing_keys && batch.tensors.count(key) == 0) continue;
      batch.tensors[key] = changed(batch.at(key).to(at::kFloat));
    }
  }
};

/// A transform of batches that is a struct with its options and
/// `void operator()(Batch& batch, std::vector<Rng>& rngs) const`.
template <class T>
class Mixed final : public BatchTransform {
 public:
  using Options = T;
  explicit Mixed(const T& options) : options_(options) {}
  void apply(Batch& batch, std::vector<Rng>& rngs) const override { options_(batch, rngs); }

 private:
  T options_;
};

at::Tensor of_partners(const at::Tensor& images, const std::vector<int64_t>& partners) {
  return images.index_select(0, to_device(at::tensor(partners, at::kLong), images.device()));
}

struct MixUpd : MixOptions {
  void operator()(Batch& batch, std::vector<Rng>& rngs) const {
    std::vector<double> weights;
    for (Rng& rng : rngs) weights.push_back(draw_beta(rng, alpha));
    const std::vector<int64_t> partners = draw_partners(rngs);
    for_each(batch, [&](const at::Tensor& images) {
      return at::lerp(
          of_partners(images, partners), images, per_sample(weights, images).expand_as(images));
    });
  }
};
CYTRA_REGISTER(BatchTransform, Mixed<MixUpd>, "MixUpd");

/// A box in each image, in shares of its size; parts beyond the image are cut off.
class RandomBoxes {
 public:
  RandomBoxes(std::vector<Rng>& rngs, double alpha) {
    for (Rng& rng : rngs) {
      sides_.push_back(std::sqrt(1 - draw_beta(rng, alpha)));
      corners_.push_back({rng.uniform(), rng.uniform(), rng.uniform()});
    }
  }
  /// Which voxels are inside, to be broadcast with the images (N,C,[D,]H,W).
  at::Tensor inside(const at::Tensor& images) const {
    at::Tensor inside;
    for (int64_t d = 2; d < images.dim(); ++d) {
      const auto n = static_cast<double>(images.size(d));
      std::vector<double> first, end;
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        first.push_back(std::floor(corners_[i][static_cast<std::size_t>(d - 2)] * n));
        end.push_back(std::ceil(first.back() + n * sides_[i]));
      }
      std::vector<int64_t> shape(static_cast<std::size_t>(images.dim()), 1);
      shape[static_cast<std::size_t>(d)] = images.size(d);
      const at::Tensor voxel = at::arange(images.size(d), images.options()).reshape(shape);
      const at::Tensor here =
          voxel.ge(per_sample(first, images)).logical_and_(voxel.lt(per_sample(end, images)));
      inside = inside.defined() ? inside.logical_and(here) : here;
    }
    return inside;
  }

 private:
  std::vector<double> sides_;
  std::vector<std::array<double, 3>> corners_;
};

struct CutMixd : MixOptions {
  std::vector<std::string> label_keys;
  void visit(auto& v) {
    MixOptions::visit(v);
    v("label_keys", label_keys, "further keys, which get the same boxes");
  }
  void check() { keys.insert(keys.end(), label_keys.begin(), label_keys.end()); }

  void operator()(Batch& batch, std::vector<Rng>& rngs) const {
    const RandomBoxes boxes(rngs, alpha);
    const std::vector<int64_t> partners = draw_partners(rngs);
    for_each(batch, [&](const at::Tensor& images) {
      return at::where(boxes.inside(images), of_partners(images, partners), images);
    });
  }
};
CYTRA_REGISTER(BatchTransform, Mixed<CutMixd>, "CutMixd");

/// Sets voxels inside of a box to 0.
struct CutOutd : MixOptions {
  void operator()(Batch& batch, std::vector<Rng>& rngs) const {
    const RandomBoxes boxes(rngs, alpha);
    for_each(batch,
             [&](const at::Tensor& images) { return images.masked_fill(boxes.inside(images), 0); });
  }
};
CYTRA_REGISTER(BatchTransform, Mixed<CutOutd>, "CutOutd");

}  // namespace
}  // namespace cytra::data
