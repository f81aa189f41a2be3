#pragma once
// Boxes in a plane, (N,4) as x0 y0 x1 y1, x1 and y1 exclusive: how much they overlap, and which of
// them to keep. (ops/boxes/boxes.h finds the boxes of labels.)
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// The intersection over the union of each pair of boxes, 0 to 1. Shape: (N,4), (M,4) -> (N,M),
/// float, on the boxes' device. Boxes without an area give 0. Source: torchvision.ops.box_iou.
at::Tensor box_iou(const at::Tensor& boxes, const at::Tensor& others);

/// Numbers of the boxes that stay, by descending score: of two of one class that overlap by more
/// than `iou_threshold`, the better one does; of equal scores, the first one. Shape: (N,4), scores
/// (N), classes (N) int64 -> (K) int64, on the CPU. Source: torchvision.ops.batched_nms.
at::Tensor nms(const at::Tensor& boxes,
               const at::Tensor& scores,
               const at::Tensor& classes,
               double iou_threshold);

}  // namespace cytra::ops
