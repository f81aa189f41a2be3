// ComponentLabelsd: a number for each piece of a mask. Source: skimage.measure.label with all axes.
#include "data/sample/per_key.h"
#include "data/survey/target_facts.h"
#include "ops/labels/components.h"

namespace cytra::data {
namespace {

struct ComponentLabelsd : KeyOptions {
  std::vector<double> values;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("values",
      values,
      "values whose connected voxels are an object each; all others become 0",
      config::required);
  }
  void check() const {
    if (values.empty()) throw ConfigError("values: expected one or more");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const at::Tensor mask = without_equal_channels(image);
    if (mask.size(0) != 1) {
      throw DataError("{} channels, expected one whose values say where objects are", mask.size(0));
    }
    const at::Tensor numbers = mask[0].to(at::kCPU, at::kDouble);
    at::Tensor kinds = at::zeros(numbers.sizes(), at::kInt);  // touching values stay apart
    for (std::size_t i = 0; i < values.size(); ++i)
      kinds.masked_fill_(numbers.eq(values[i]), static_cast<int64_t>(i) + 1);
    return ops::connected_components(kinds, 0).labels.unsqueeze(0);
  }
};
CYTRA_REGISTER(Transform, PerKey<ComponentLabelsd>, "ComponentLabelsd");

}  // namespace
}  // namespace cytra::data
