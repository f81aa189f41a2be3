#pragma once
// Objects as flows: at each of its voxels a unit vector that leads to the object's centre. What a
// network learns instead of the objects' numbers.
// Source: Stringer 2021, Cellpose; cellpose/dynamics.py (equal flows).
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Heat diffuses from each object's centre through the object; its gradient gives the flows, 0 in
/// the background.
/// Shape: labels ([Z,]Y,X), 0: none -> (D,[Z,]Y,X) float32.
at::Tensor masks_to_flows(const at::Tensor& labels);

}  // namespace cytra::ops
