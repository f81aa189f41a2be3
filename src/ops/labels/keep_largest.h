#pragma once
// Options by the names and arguments of MONAI's transform, which the transform of
// data/transforms/label and the step of inference/postprocess take.
// Shape: image (C,[Z,]Y,X) of any real type -> the same type and shape where nothing else is said.
// Throws: DataError for an image that does not fit.
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Clears all but the largest components of each label; of equal ones the later counts as larger
/// (in the peer an unstable sort decides). Source: monai.transforms.KeepLargestConnectedComponent.
struct KeepLargestConnectedComponent {
  std::vector<int64_t> applied_labels;
  std::optional<bool> is_onehot;
  bool independent = true;
  std::optional<int64_t> connectivity;
  int64_t num_components = 1;
  template <class V>
  void visit(V& v) {
    v("applied_labels", applied_labels, "labels to treat, channels of one-hot; null: all but 0");
    v("is_onehot", is_onehot, "a channel for each label; null: when there are several channels");
    v("independent", independent, "each label by itself; false: what they cover together");
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("num_components", num_components, "regions to keep", 1, 1e9);
  }
  at::Tensor operator()(const at::Tensor& image) const;

 private:
  at::Tensor of_labels(const at::Tensor& image) const;
  at::Tensor of_channels(const at::Tensor& image) const;
  at::Tensor to_clear(const at::Tensor& values) const;
};

}  // namespace cytra::ops
