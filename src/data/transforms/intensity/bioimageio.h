#pragma once
// The preprocessing and postprocessing of bioimage.io's model description 0.5.
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"

namespace cytra::data {

/// A list of operations `{id, kwargs}` in the words of the specification
/// (github.com/bioimage-io/spec-bioimage-io, model 0.5): binarize, clip, ensure_dtype,
/// scale_linear, sigmoid, softmax, fixed_zero_mean_unit_variance, zero_mean_unit_variance,
/// scale_range. Axes are named batch, channel, z, y, x. Values as of bioimageio.core 0.11; a
/// `batch` among the axes, by which statistics are those of a data set there, is taken from the
/// image.
class BioimageioOperations {
 public:
  /// Throws: ConfigError naming the place for an operation or argument that is not known.
  explicit BioimageioOperations(const config::Node& list);
  /// Applies all to an image (C,[D,]H,W) float32. Throws: DataError where the numbers do not fit
  /// its channels.
  at::Tensor operator()(const at::Tensor& image) const;
  /// Whether they change each voxel by itself.
  bool are_pointwise() const { return are_pointwise_; }

 private:
  std::vector<std::function<at::Tensor(const at::Tensor&)>> operations_;
  bool are_pointwise_ = true;
};

}  // namespace cytra::data
