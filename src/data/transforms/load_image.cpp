// LoadImaged: files to tensors, channel first. Source:
// monai.transforms.LoadImaged(ensure_channel_first=True).
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/image_tensor.h"
#include "data/sample.h"
#include "io/reader.h"

namespace cytra::data {
namespace {

class LoadImaged final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    int64_t spatial_dims = 2;
    bool allow_missing_keys = false;
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to load", config::required);
      v("spatial_dims", spatial_dims, "2: planes (C,H,W); 3: stacks (C,D,H,W)", 2, 3);
      v("allow_missing_keys", allow_missing_keys, "skip a key the sample does not have");
    }
  };
  explicit LoadImaged(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    for (const std::string& key : options_.keys) {
      const auto source = sample.sources.find(key);
      if (source == sample.sources.end()) {
        if (options_.allow_missing_keys) continue;
        throw DataError(sample.id + ": the data set has no column '" + key +
                        "' that LoadImaged asks for");
      }
      const std::string& path = source->second.path;
      const io::Image image = io::read_image(path, source->second.selection);
      if (key == options_.keys.front()) sample.geometry = image.geometry;
      at::Tensor tensor = to_tensor(image, options_.spatial_dims, path);
      if (tensor.scalar_type() == at::kFloat && !at::isfinite(tensor.sum()).item<bool>()) {
        const auto bad = at::isfinite(tensor).logical_not().sum().item<int64_t>();
        if (bad > 0) {
          throw DataError(path + ": " + std::to_string(bad) + " of " +
                          std::to_string(tensor.numel()) +
                          " values are NaN or infinite; expected finite intensities");
        }
      }
      sample.tensors[key] = std::move(tensor);
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, LoadImaged, "LoadImaged");

}  // namespace
}  // namespace cytra::data
