// RandRotate90d: turns by 90 degrees, 1 to max_k times. Source: monai.transforms.RandRotate90d.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {
namespace {

class RandRotate90d final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    double prob = 0.1;
    int64_t max_k = 3;
    std::vector<int64_t> spatial_axes{0, 1};
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to turn together", config::required);
      v("prob", prob, "probability of a turn", 0, 1);
      v("max_k", max_k, "turns are drawn from 1..max_k", 1, 3);
      v("spatial_axes",
        spatial_axes,
        "the plane of the turn; its two sides must be equal in a crop");
    }
    void check() const {
      if (spatial_axes.size() != 2) throw ConfigError("RandRotate90d: spatial_axes needs two axes");
    }
  };
  explicit RandRotate90d(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }

  void apply(Sample& sample, Rng& rng) const override {
    if (rng.uniform() >= options_.prob) return;
    const auto k = static_cast<int64_t>(rng.below(static_cast<uint64_t>(options_.max_k))) + 1;
    for (const std::string& key : options_.keys) {
      at::Tensor& image = sample.at(key);
      std::vector<int64_t> dims;
      for (const int64_t axis : options_.spatial_axes) dims.push_back(axis < 0 ? axis : axis + 1);
      image = image.rot90(k, dims);
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandRotate90d, "RandRotate90d");

}  // namespace
}  // namespace cytra::data
