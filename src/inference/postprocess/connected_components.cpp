// ConnectedComponents: numbers objects, which are connected voxels of one value. Source:
// skimage.measure.label.
#include "inference/postprocess/step.h"
#include "ops/labels/components.h"

namespace cytra::inference {
namespace {

struct ConnectedComponents {
  std::optional<int64_t> connectivity;
  template <class V>
  void visit(V& v) {
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
  }
  static constexpr bool kWorksByObjects = true;
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::connected_components(channel, connectivity.value_or(0)).labels;
    });
    result.is_objects = true;
  }
};
CYTRA_REGISTER(Postprocess, Step<ConnectedComponents>, "ConnectedComponents");

}  // namespace
}  // namespace cytra::inference
