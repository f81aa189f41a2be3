// AsDiscrete: classes from scores, channels from classes, 0 and 1 by a threshold. Source:
// monai.transforms.AsDiscrete.

#include "inference/postprocess/step.h"
#include "ops/labels/operations.h"

namespace cytra::inference {
namespace {

struct AsDiscrete : ops::AsDiscrete {
  void apply(Result& result) const {
    result.values = (*this)(result.values).to(at::kInt);
    result.is_labels = true;
    result.is_objects = false;
  }
};
CYTRA_REGISTER(Postprocess, Step<AsDiscrete>, "AsDiscrete");

}  // namespace
}  // namespace cytra::inference
