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

/// Fills the holes of each label with that label. Source: monai.transforms.FillHoles.
struct FillHoles {
  std::vector<int64_t> applied_labels;
  std::optional<int64_t> connectivity;
  template <class V>
  void visit(V& v) {
    v("applied_labels", applied_labels, "labels to fill, channels of one-hot; null: all but 0");
    v("connectivity",
      connectivity,
      "how a hole touches the outside, 1: faces, 2: edges too, 3: corners too; null: all",
      1,
      3);
  }
  at::Tensor operator()(const at::Tensor& image) const;
};

}  // namespace cytra::ops
