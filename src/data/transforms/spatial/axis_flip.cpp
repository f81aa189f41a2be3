// Flipd, RandFlipd, RandAxisFlipd, Rotate90d and RandRotate90d: exact mirrors and turns. Source:
// monai.transforms, the same names.
#include <numeric>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/batch_transforms/per_batch.h"
#include "data/sample/spatial_options.h"
#include "data/sample/turn.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

/// Turns every key; turn_of(dimensions of an image) is its turn.
void turn_all(const KeyOptions& options, Sample& sample, const auto& turn_of) {
  options.move_each(sample, [&](const at::Tensor& image, std::size_t, io::Geometry& geometry) {
    const Turn turn = turn_of(image.dim() - 1);
    move_voxels(geometry, matrix_of(turn, image.sizes().slice(1)));
    return turned(image, turn);
  });
}

struct FlipOptions : KeyOptions {
  std::vector<int64_t> spatial_axis;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("spatial_axis", spatial_axis, "spatial axes to flip (0 is the first after C); empty: all");
  }
  Turn flip(int64_t dims) const {
    std::vector<int64_t> axes = spatial_axis;
    if (axes.empty()) {
      axes.resize(static_cast<std::size_t>(dims));
      std::iota(axes.begin(), axes.end(), 0);
    }
    return mirror("spatial_axis", axes, dims);
  }
};

struct Flipd : FlipOptions {
  void operator()(Sample& sample) const {
    turn_all(*this, sample, [&](int64_t dims) { return flip(dims); });
  }
};
CYTRA_REGISTER(Transform, PerSample<Flipd>, "Flipd");

struct PlaneOptions : KeyOptions {
  std::vector<int64_t> spatial_axes{0, 1};
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("spatial_axes", spatial_axes, "the plane of the turn: from the first to the second axis");
  }
  void check() const {
    if (spatial_axes.size() != 2 || spatial_axes[0] == spatial_axes[1])
      throw ConfigError("spatial_axes: expected two different axes");
  }
  Turn turn(int64_t k, int64_t dims) const {
    return quarter_turns("spatial_axes", spatial_axes, k, dims);
  }
};

struct Rotate90d : PlaneOptions {
  int64_t k = 1;
  void visit(auto& v) {
    PlaneOptions::visit(v);
    v("k", k, "turns by 90 degrees");
  }

  void operator()(Sample& sample) const {
    turn_all(*this, sample, [&](int64_t dims) { return turn(k, dims); });
  }
};
CYTRA_REGISTER(Transform, PerSample<Rotate90d>, "Rotate90d");

// The random transforms: draw(rng, dimensions of the first key) gives the turn of an image by its
// dimensions.

struct RandFlipd : FlipOptions {
  double prob = 0.1;
  void visit(auto& v) {
    FlipOptions::visit(v);
    v("prob", prob, "probability of a flip", 0, 1);
  }
  auto draw(Rng&, int64_t) const {
    return [this](int64_t dims) { return flip(dims); };
  }
};

struct RandAxisFlipd : KeyOptions {
  double prob = 0.1;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("prob", prob, "probability of a flip along one axis, drawn from all", 0, 1);
  }
  auto draw(Rng& rng, int64_t axes) const {
    const auto axis = static_cast<int64_t>(rng.below(static_cast<uint64_t>(axes)));
    return [axis](int64_t dims) { return mirror("RandAxisFlipd", {axis}, dims); };
  }
};

struct RandRotate90d : PlaneOptions {
  double prob = 0.1;
  int64_t max_k = 3;
  void visit(auto& v) {
    PlaneOptions::visit(v);
    v("prob", prob, "probability of a turn; crops need equal sides in its plane", 0, 1);
    v("max_k", max_k, "turns are drawn from 1..max_k", 1, 3);
  }
  auto draw(Rng& rng, int64_t) const {
    const int64_t k = 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(max_k)));
    return [this, k](int64_t dims) { return turn(k, dims); };
  }
};

template <class T>
class RandTurn final : public Transform {
 public:
  using Options = T;
  explicit RandTurn(const T& options) : options_(options) {}
  bool is_random() const override { return true; }
  void apply(Sample& sample, Rng& rng) const override {
    const auto dims = static_cast<int64_t>(options_.first_size(sample).size());
    if (rng.uniform() < options_.prob && dims > 0)
      turn_all(options_, sample, options_.draw(rng, dims));
  }

 private:
  T options_;
};
CYTRA_REGISTER(Transform, RandTurn<RandFlipd>, "RandFlipd");
CYTRA_REGISTER(Transform, RandTurn<RandAxisFlipd>, "RandAxisFlipd");
CYTRA_REGISTER(Transform, RandTurn<RandRotate90d>, "RandRotate90d");

template <class T>
struct BatchTurn : T {
  Turn draw_one(Rng& rng, at::IntArrayRef image) const {
    const auto dims = std::ssize(image) - 1;
    return this->draw(rng, dims)(dims);
  }
  at::Tensor on_batch(const at::Tensor& images, const std::vector<Turn>& drawn, std::size_t) const {
    at::Tensor result = images;
    std::vector<bool> done(drawn.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      if (done[i]) continue;
      std::vector<int64_t> same;  // samples with the turn of this one
      for (std::size_t j = i; j < drawn.size(); ++j) {
        if (drawn[j].from != drawn[i].from || drawn[j].mirrored != drawn[i].mirrored) continue;
        same.push_back(static_cast<int64_t>(j));
        done[j] = true;
      }
      std::vector<int64_t> flips, order{0, 1};
      for (std::size_t d = 0; d < drawn[i].from.size(); ++d) {
        order.push_back(drawn[i].from[d] + 2);
        if (drawn[i].mirrored[d]) flips.push_back(static_cast<int64_t>(d) + 2);
      }
      const at::Tensor index = to_device(at::tensor(same, at::kLong), images.device());
      const at::Tensor turned = images.index_select(0, index).permute(order).flip(flips);
      if (turned.sizes().slice(1) != images.sizes().slice(1))
        throw DataError("the sides of the turned plane differ, expected equal ones in a batch");
      result = result.index_copy(0, index, turned);
    }
    return result;
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchTurn<RandFlipd>>, "RandFlipd");
CYTRA_REGISTER(BatchTransform, PerBatch<BatchTurn<RandAxisFlipd>>, "RandAxisFlipd");
CYTRA_REGISTER(BatchTransform, PerBatch<BatchTurn<RandRotate90d>>, "RandRotate90d");

}  // namespace
}  // namespace cytra::data::spatial
