#pragma once
// Objects as flows: each voxel of an object has a unit vector that leads to the object's centre. A
// network learns these instead of the objects' numbers.
// Source: Stringer 2021, Cellpose; cellpose/dynamics.py (equal flows, equal labels).
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/labels/volume.h"

namespace cytra::ops {

/// Heat diffuses from each object's centre through the object; its gradient gives the flows, 0 in
/// the background.
/// Shape: labels ([Z,]Y,X), 0: none -> (D,[Z,]Y,X) float32.
at::Tensor masks_to_flows(const at::Tensor& labels);

/// Labels of a network's flows: voxels follow them, and the places where many end are objects.
/// Arguments and defaults are those of cellpose's eval(). It needs about 60 bytes per voxel beside
/// the values; LabelBlocks makes larger images of parts.
struct FlowsToLabels {
  static constexpr int64_t kBytesPerVoxel = 60;
  int64_t niter = 200, min_size = 15;
  double cellprob_threshold = 0, flow_threshold = 0.4, max_size_fraction = 0.4;
  void visit(auto& v) {
    v("niter", niter, "steps that a voxel follows the flow", 1, 100000);
    v("cellprob_threshold", cellprob_threshold, "logit from which on a voxel is an object's");
    v("flow_threshold",
      flow_threshold,
      "2D: objects whose own flows differ more than this from the predicted are dropped; 0: none",
      0,
      100);
    v("min_size", min_size, "voxels; smaller objects are dropped", 0, 1e15);
    v("max_size_fraction",
      max_size_fraction,
      "share of the image; larger objects are dropped",
      0,
      1);
  }
  /// Shape: (D+1,[Z,]Y,X): flows times 5 and the logit of being an object's -> int32 ([Z,]Y,X),
  /// numbered by their first voxels. Those of a part are bit for bit the image's, where the way of
  /// each voxel stays in the part. Throws: DataError for another number of channels.
  at::Tensor operator()(const at::Tensor& output, const Part& part) const;
  at::Tensor operator()(const at::Tensor& output) const {
    return (*this)(output, Part::whole(output));
  }
};

}  // namespace cytra::ops
