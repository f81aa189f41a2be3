// RandFlipd: mirrors along axes with a probability. Source: monai.transforms.RandFlipd.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {
namespace {

class RandFlipd final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    double prob = 0.1;
    std::vector<int64_t> spatial_axis;
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to flip together", config::required);
      v("prob", prob, "probability of a flip", 0, 1);
      v("spatial_axis", spatial_axis, "spatial axes to flip (0 is the first after C); empty: all");
    }
  };
  explicit RandFlipd(const Options& options) : options_(options) {}
  bool is_random() const override { return true; }

  void apply(Sample& sample, Rng& rng) const override {
    if (rng.uniform() >= options_.prob) return;
    for (const std::string& key : options_.keys) {
      at::Tensor& image = sample.at(key);
      std::vector<int64_t> dims;
      for (const int64_t axis : options_.spatial_axis) dims.push_back(axis < 0 ? axis : axis + 1);
      if (dims.empty()) {
        for (int64_t d = 1; d < image.dim(); ++d) dims.push_back(d);
      }
      image = image.flip(dims);
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, RandFlipd, "RandFlipd");

}  // namespace
}  // namespace cytra::data
