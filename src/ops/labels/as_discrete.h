#pragma once
// Options by the names and arguments of MONAI's transform, which the transform of
// data/transforms/label and the step of inference/postprocess take.
// Shape: image (C,[Z,]Y,X) of any real type -> the same type and shape where nothing else is said.
// Throws: DataError for an image that does not fit.
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Makes classes of scores, channels of classes, 0 and 1 by a threshold, and whole numbers, in
/// this order. The result may have any type. Source: monai.transforms.AsDiscrete.
struct AsDiscrete {
  bool argmax = false;
  std::optional<int64_t> to_onehot;
  std::optional<double> threshold;
  std::optional<std::string> rounding;
  template <class V>
  void visit(V& v) {
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
