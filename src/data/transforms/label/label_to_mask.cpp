// LabelToMaskd: 1 where there is one of some labels; of one-hot images, those channels. Source:
// monai.transforms.LabelToMaskd.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct LabelToMaskd : KeyOptions {
  std::vector<int64_t> select_labels;
  bool merge_channels = false;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("select_labels",
      select_labels,
      "labels, or channels where there are several",
      config::required);
    v("merge_channels", merge_channels, "one channel: 1 where any is not 0");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    at::Tensor mask;
    if (image.size(0) > 1) {
      for (const int64_t label : select_labels) {
        if (label < 0 || label >= image.size(0)) {
          throw DataError("select_labels has " + std::to_string(label) +
                          ", expected a channel below " + std::to_string(image.size(0)));
        }
      }
      mask = image.index_select(0, at::tensor(select_labels));
    } else {
      mask = at::zeros_like(image, at::kBool);
      for (const int64_t label : select_labels) mask = mask.logical_or(image.eq(label));
    }
    return (merge_channels ? mask.ne(0).any(0, /*keepdim=*/true) : mask).to(at::kFloat);
  }
};
CYTRA_REGISTER(Transform, PerKey<LabelToMaskd>, "LabelToMaskd");

}  // namespace
}  // namespace cytra::data
