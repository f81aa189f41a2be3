// LabelFilterd, MapLabelValued: select labels, and change their numbers. LabelToMaskd: 1 where
// there is one of some labels; of one-hot images, those channels. LabelToContourd: 1 at the voxels
// of a mask that have a neighbour outside of it (a Laplace kernel; zeros beyond the border).
// Source: monai.transforms, the same names.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct LabelFilterd : KeyOptions {
  static constexpr bool kIsPointwise = true;
  std::vector<double> applied_labels;
  void visit(auto& v) {
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
  void visit(auto& v) {
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

struct LabelToMaskd : KeyOptions {
  std::vector<int64_t> select_labels;
  bool merge_channels = false;
  void visit(auto& v) {
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

struct LabelToContourd : KeyOptions {
  std::string kernel_type = "Laplace";
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("kernel_type", kernel_type, "the filter", {"Laplace"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const int64_t dims = image.dim() - 1, taps = dims == 3 ? 27 : 9;
    std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, 3);
    shape[0] = shape[1] = 1;
    at::Tensor kernel = at::full({taps}, -1.0F);
    kernel[taps / 2] = static_cast<double>(taps - 1);
    kernel = kernel.reshape(shape);
    const std::vector<int64_t> ones(static_cast<std::size_t>(dims), 1);
    const at::Tensor channels = image.unsqueeze(1);
    const at::Tensor edges = dims == 3 ? at::conv3d(channels, kernel, {}, ones, ones)
                                       : at::conv2d(channels, kernel, {}, ones, ones);
    return edges.squeeze(1).clamp(0, 1);
  }
};
CYTRA_REGISTER(Transform, PerKey<LabelToContourd>, "LabelToContourd");

}  // namespace

}  // namespace cytra::data
