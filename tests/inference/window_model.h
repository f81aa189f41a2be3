#pragma once
// The predictors of tests/golden/make_sliding_window.py.
#include <ATen/ATen.h>

#include "inference/windows/sliding_window.h"
#include "tests/support/golden.h"

namespace cytra::test {

inline at::Tensor identity(const at::Tensor& windows) {
  return windows;
}

/// Depends on the place inside the window, so wrong blending shows.
inline inference::Forward window_model(const std::vector<std::string>& outputs) {
  return [outputs](const at::Tensor& x) {
    const int64_t dims = x.dim() - 2;
    at::Tensor weights = at::zeros(x.sizes().slice(2));
    for (int64_t d = 0; d < dims; ++d) {
      std::vector<int64_t> shape(static_cast<std::size_t>(dims), 1);
      const int64_t size = shape[static_cast<std::size_t>(d)] = weights.size(d);
      weights = weights + (1 + at::arange(size, at::kFloat) / size).reshape(shape);
    }
    const at::Tensor ramp = x * weights.to(x.device());
    std::vector<at::Tensor> made;
    for (const std::string& name : outputs) {
      if (name == "full") {
        made.push_back(at::cat({ramp, x + 1}, 1));
      } else if (name == "wide") {
        made.push_back(at::cat({ramp, ramp - 1, ramp * 2}, 1));
      } else if (name == "half") {
        made.push_back(dims == 1   ? at::avg_pool1d(ramp, {2})
                       : dims == 2 ? at::avg_pool2d(ramp, {2, 2})
                                   : at::avg_pool3d(ramp, {2, 2, 2}));
      } else {
        at::Tensor large = ramp;
        for (int64_t d = 2; d < x.dim(); ++d) large = large.repeat_interleave(2, d);
        made.push_back(large);
      }
    }
    return made;
  };
}
inline inference::Forward window_model(const GoldenCase& entry) {
  std::vector<std::string> outputs;
  for (const config::Node& name : entry.node.at("model").list) outputs.push_back(name.string);
  return window_model(outputs);
}
inline inference::SlidingWindowOptions window_options(const GoldenCase& entry) {
  auto options = config::parse<inference::SlidingWindowOptions>(entry.options());
  if (entry.has("weights")) options.roi_weight_map = entry.tensor("weights");
  return options;
}

}  // namespace cytra::test
