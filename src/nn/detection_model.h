#pragma once
// Networks that find objects. Include only from .cpp files, as nn/model.h.
#include <cstdint>
#include <vector>

#include "nn/model.h"

namespace cytra::nn {

/// Objects of one image: (K,4) float as x0 y0 x1 y1, x1 and y1 exclusive, in pixels; scores (K)
/// float, of predictions alone; classes (K) int64, from 0.
struct Boxes {
  at::Tensor corners, scores, classes;
};

/// Every place of a level looks for the object that it lies in. all() gives the levels, the finest
/// first, (N, num_classes() + 5, H / stride, W / stride): logits of the classes; distances to the
/// left, upper, right and lower side in strides, >= 0; a logit of how central the place is.
struct DetectionModel : Model {
  using Model::Model;
  virtual std::vector<int64_t> strides() const = 0;  // ascending
  virtual int64_t num_classes() const = 0;
  int64_t out_channels() const override { return num_classes() + 5; }
  int64_t spatial_dims() const override { return 2; }
};

}  // namespace cytra::nn
