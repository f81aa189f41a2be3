// ConnectedComponents: numbers objects, which are connected voxels of one value. Source:
// skimage.measure.label.
#include "inference/postprocess/step.h"
#include "ops/labels/components.h"

namespace cytra::inference {
namespace {

class ConnectedComponents final : public Postprocess {
 public:
  struct Options {
    std::optional<int64_t> connectivity;
    template <class V>
    void visit(V& v) {
      v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    }
  };
  explicit ConnectedComponents(const Options& options) : options_(options) {}
  bool works_by_objects() const override { return true; }
  void apply(Result& result) const override {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::connected_components(channel, options_.connectivity.value_or(0)).labels;
    });
    result.is_objects = true;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, ConnectedComponents, "ConnectedComponents");

}  // namespace
}  // namespace cytra::inference
