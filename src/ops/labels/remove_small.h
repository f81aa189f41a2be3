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

/// Clears objects of few voxels. An image with values above 1 holds numbered objects, whose voxels
/// need not be connected; a mask's objects are its components. Objects of min_size stay
/// (scikit-image 0.26 removes them; the versions before and the documentation do not). Source:
/// monai.transforms.RemoveSmallObjects, skimage.morphology.remove_small_objects.
struct RemoveSmallObjects {
  double min_size = 64;
  std::optional<int64_t> connectivity = 1;
  bool independent_channels = true, by_measure = false;
  std::vector<double> pixdim;
  template <class V>
  void visit(V& v) {
    v("min_size", min_size, "smaller objects are removed; voxels, or see by_measure", 0, 1e15);
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("independent_channels", independent_channels, "false: objects of any number count together");
    v("by_measure", by_measure, "min_size is in the units of pixdim, to the power of dimensions");
    v("pixdim", pixdim, "distance between voxels, one or per spatial dimension", 1e-12, 1e12);
  }
  /// Shape: one channel.
  at::Tensor operator()(const at::Tensor& image) const;

 private:
  double smallest(int64_t dims) const;
};

}  // namespace cytra::ops
