// AsDiscrete: classes from scores, channels from classes, 0 and 1 by a threshold. Source:
// monai.transforms.AsDiscrete.
#include "ops/labels/as_discrete.h"

#include "inference/postprocess/step.h"

namespace cytra::inference {
namespace {

class AsDiscrete final : public Postprocess {
 public:
  using Options = ops::AsDiscrete;
  explicit AsDiscrete(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    result.values = options_(result.values).to(at::kInt);
    result.is_labels = true;
    result.is_objects = false;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, AsDiscrete, "AsDiscrete");

}  // namespace
}  // namespace cytra::inference
