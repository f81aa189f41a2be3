#pragma once
// Objects as flows: each voxel of an object has a unit vector that leads to the object's centre. A
// network learns these instead of the objects' numbers.
// Source: Stringer 2021, Cellpose; cellpose/dynamics.py (equal flows).
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Heat diffuses from each object's centre through the object; its gradient gives the flows, 0 in
/// the background.
/// Shape: labels ([Z,]Y,X), 0: none -> (D,[Z,]Y,X) float32.
at::Tensor masks_to_flows(const at::Tensor& labels);

}  // namespace cytra::ops
