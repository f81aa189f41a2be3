#pragma once
// The preprocessing and postprocessing of bioimage.io's model description 0.5.
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"

namespace cytra::data {

/// A list of operations `{id, kwargs}` in the words of the specification
/// (github.com/bioimage-io/spec-bioimage-io, model 0.5): binarize, clip, ensure_dtype,
/// scale_linear, sigmoid, softmax, fixed_zero_mean_unit_variance, zero_mean_unit_variance,
/// scale_mean_variance, scale_range. Axes are named batch, channel, z, y, x; a `reference_tensor`
/// is `input`. Values as of bioimageio.core 0.11; a `batch` among the axes, by which statistics are
/// those of a data set there, is taken from the image.
class BioimageioOperations {
 public:
  /// Throws: ConfigError naming the place for an operation or argument that is not known.
  explicit BioimageioOperations(const config::Node& list);
  /// Applies all to an image (C,[D,]H,W) float32. `input`: the model's input before any operation,
  /// of as many dimensions; undefined: not known. Throws: DataError where the numbers do not fit
  /// its channels, and where an operation takes an input that is not known.
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& input) const;
  /// Whether an operation takes statistics of the input.
  bool take_input() const { return take_input_; }
  /// Whether they change each voxel by itself.
  bool are_pointwise() const { return are_pointwise_; }

 private:
  std::vector<std::function<at::Tensor(const at::Tensor& image, const at::Tensor& input)>>
      operations_;
  bool are_pointwise_ = true, take_input_ = false;
};

}  // namespace cytra::data
