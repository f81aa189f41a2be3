#pragma once
// Options by the names and arguments of MONAI's transform, which the transform of
// data/transforms/label and the step of inference/postprocess take.
// Shape: image (C,[Z,]Y,X) of any real type -> the same type and shape where nothing else is said.
// Throws: DataError for an image that does not fit.
// row_step() does the same to labels whose rows come in order, null where it can't. `image`:
// ([Z,]Y,X); `folder`: as KeptRows.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

class RowStep;  // ops/labels/row_step.h

/// Clears objects of few voxels. An image with values above 1 holds numbered objects, whose voxels
/// need not be connected; a mask's objects are its components. Objects of min_size stay
/// (scikit-image 0.26 removes them; the versions before and the documentation do not). Source:
/// monai.transforms.RemoveSmallObjects, skimage.morphology.remove_small_objects.
struct RemoveSmallObjects {
  double min_size = 64;
  std::optional<int64_t> connectivity = 1;
  bool independent_channels = true, by_measure = false;
  std::vector<double> pixdim;
  void visit(auto& v) {
    v("min_size", min_size, "smaller objects are removed; voxels, or see by_measure", 0, 1e15);
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("independent_channels", independent_channels, "false: objects of any number count together");
    v("by_measure", by_measure, "min_size is in the units of pixdim, to the power of dimensions");
    v("pixdim", pixdim, "distance between voxels, one or per spatial dimension", 1e-12, 1e12);
  }
  /// Shape: one channel.
  at::Tensor operator()(const at::Tensor& image) const;
  std::unique_ptr<RowStep> row_step(const std::vector<int64_t>& image,
                                    const std::string& folder) const;

 private:
  double smallest(int64_t dims) const;
};

/// Clears all but the largest components of each label; of equal ones the later counts as larger
/// (in the peer an unstable sort decides). Source: monai.transforms.KeepLargestConnectedComponent.
struct KeepLargestConnectedComponent {
  std::vector<int64_t> applied_labels;
  std::optional<bool> is_onehot;
  bool independent = true;
  std::optional<int64_t> connectivity;
  int64_t num_components = 1;
  void visit(auto& v) {
    v("applied_labels", applied_labels, "labels to treat, channels of one-hot; null: all but 0");
    v("is_onehot", is_onehot, "a channel for each label; null: when there are several channels");
    v("independent", independent, "each label by itself; false: what they cover together");
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("num_components", num_components, "regions to keep", 1, 1e9);
  }
  at::Tensor operator()(const at::Tensor& image) const;
  std::unique_ptr<RowStep> row_step(const std::vector<int64_t>& image,
                                    const std::string& folder) const;

 private:
  at::Tensor of_labels(const at::Tensor& image) const;
  at::Tensor of_channels(const at::Tensor& image) const;
  at::Tensor to_clear(const at::Tensor& values) const;
};

/// Fills the holes of each label with that label. Source: monai.transforms.FillHoles.
struct FillHoles {
  std::vector<int64_t> applied_labels;
  std::optional<int64_t> connectivity;
  int64_t flood_voxels = int64_t{1} << 22;  // larger boxes are filled by slabs
  void visit(auto& v) {
    v("applied_labels", applied_labels, "labels to fill, channels of one-hot; null: all but 0");
    v("connectivity",
      connectivity,
      "how a hole touches the outside, 1: faces, 2: edges too, 3: corners too; null: all",
      1,
      3);
  }
  at::Tensor operator()(const at::Tensor& image) const;
  std::unique_ptr<RowStep> row_step(const std::vector<int64_t>& image,
                                    const std::string& folder) const;
};

/// Makes classes of scores, channels of classes, 0 and 1 by a threshold, and whole numbers, in
/// this order. The result may have any type. Source: monai.transforms.AsDiscrete.
struct AsDiscrete {
  bool argmax = false;
  std::optional<int64_t> to_onehot;
  std::optional<double> threshold;
  std::optional<std::string> rounding;
  void visit(auto& v) {
    v("argmax", argmax, "the channel with the largest value");
    v("to_onehot", to_onehot, "a channel for each of so many classes");
    v("threshold", threshold, "values from here on become 1, others 0");
    v("rounding", rounding, "torchrounding: to whole numbers");
  }
  bool is_idle() const { return !argmax && !to_onehot && !threshold && !rounding; }
  /// Throws: ConfigError, also when it is idle.
  void check() const;
  at::Tensor operator()(const at::Tensor& image) const;
};

}  // namespace cytra::ops
