// ThresholdIntensityd: values beyond a threshold become a constant. Source:
// monai.transforms.ThresholdIntensityd.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct ThresholdIntensityd : KeyOptions {
  double threshold = 0, cval = 0;
  bool above = true;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("threshold", threshold, "the values kept lie strictly beyond it", config::required);
    v("above", above, "keep those above; false: those below");
    v("cval", cval, "what the others become");
  }
  static constexpr bool kIsPointwise = true;
  at::Tensor operator()(const at::Tensor& image) const {
    return at::where(above ? image.gt(threshold) : image.lt(threshold), image, cval);
  }
};
CYTRA_REGISTER(Transform, PerKey<ThresholdIntensityd>, "ThresholdIntensityd");

}  // namespace
}  // namespace cytra::data
