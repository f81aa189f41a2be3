#pragma once
// Objects as boxes, in images of any number D of spatial dimensions: how far they overlap, which of
// them stay, where they lie. (ops/boxes/label_boxes.h finds the boxes of labels.)
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// The objects of one image.
/// Shape: corners (K,2D) float, in pixels: where a box begins along X, Y and Z, then where it ends,
/// exclusive. That is torchvision's x0 y0 x1 y1 in a plane and MONAI's "xyzxyz" in a volume. scores
/// (K) float, undefined for what is true; classes (K) int64, from 0.
struct Boxes {
  at::Tensor corners, scores, classes;
  int64_t count() const { return corners.size(0); }
  int64_t dims() const { return corners.size(1) / 2; }
  /// The boxes of these numbers, (N) int64.
  Boxes chosen(const at::Tensor& numbers) const;
};

/// Lengths along X, Y, Z. Shape: corners (...,2D) -> (...,D).
at::Tensor box_sides(const at::Tensor& corners);
/// The area or volume of each. Shape: (...,2D) -> (...).
at::Tensor box_volumes(const at::Tensor& corners);

/// The intersection over the union of each pair, 0 to 1; boxes without a volume give 0. Shape:
/// (N,2D), (M,2D) -> (N,M), of their type, on their device. Source: torchvision.ops.box_iou,
/// monai.data.box_utils.box_iou.
at::Tensor box_iou(const at::Tensor& boxes, const at::Tensor& others);

/// Numbers of the boxes that stay, by descending score: of two of one class that overlap by more
/// than `iou_threshold`, the better one does; of equal scores, the first one. Shape: (N,2D), scores
/// (N), classes (N) int64 -> (K) int64, on the CPU. Source: torchvision.ops.batched_nms.
at::Tensor nms(const at::Tensor& boxes,
               const at::Tensor& scores,
               const at::Tensor& classes,
               double iou_threshold);

/// The parts within an image of `size` ([D,]H,W); what lies outside is left without a volume.
at::Tensor clip_boxes(const at::Tensor& corners, const std::vector<int64_t>& size);
/// Boxes moved by so many pixels ([Z,]Y,X).
at::Tensor shift_boxes(const at::Tensor& corners, const std::vector<int64_t>& by);
/// Boxes of an image that is resized by `factors` ([Z,]Y,X), rounded once, to float32.
at::Tensor scale_boxes(const at::Tensor& corners, const std::vector<double>& factors);

}  // namespace cytra::ops
