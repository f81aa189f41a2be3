// AsDiscreted: x >= threshold becomes 1, else 0. Source:
// monai.transforms.AsDiscreted(threshold=...).
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {
namespace {

class AsDiscreted final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    double threshold = 0.5;
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to binarise", config::required);
      v("threshold",
        threshold,
        "values from here on become 1; 0.5 makes a mask of instance labels");
    }
  };
  explicit AsDiscreted(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    for (const std::string& key : options_.keys) {
      at::Tensor& image = sample.at(key);
      image = image.ge(options_.threshold).to(at::kFloat);
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, AsDiscreted, "AsDiscreted");

}  // namespace
}  // namespace cytra::data
