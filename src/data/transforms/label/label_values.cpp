// LabelFilterd, MapLabelValued: select labels, and change their numbers. Source: monai.transforms,
// the same names.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct LabelFilterd : KeyOptions {
  static constexpr bool kIsPointwise = true;
  std::vector<double> applied_labels;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("applied_labels", applied_labels, "labels that stay, others become 0", config::required);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const at::Tensor stays = at::isin(image, at::tensor(applied_labels, image.options()));
    return at::where(stays, image, 0);
  }
};
CYTRA_REGISTER(Transform, PerKey<LabelFilterd>, "LabelFilterd");

struct MapLabelValued : KeyOptions {
  static constexpr bool kIsPointwise = true;
  std::vector<double> orig_labels, target_labels;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("orig_labels", orig_labels, "labels to change, others stay", config::required);
    v("target_labels", target_labels, "what each of them becomes", config::required);
  }
  void check() const {
    if (orig_labels.size() == target_labels.size()) return;
    throw ConfigError("target_labels: " + std::to_string(target_labels.size()) + " for " +
                      std::to_string(orig_labels.size()) + " orig_labels, expected one for each");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    at::Tensor result = image;
    for (std::size_t i = 0; i < orig_labels.size(); ++i)
      result = result.masked_fill(image.eq(orig_labels[i]), target_labels[i]);
    return result;
  }
};
CYTRA_REGISTER(Transform, PerKey<MapLabelValued>, "MapLabelValued");

}  // namespace
}  // namespace cytra::data
