#pragma once
// The targets of networks that find objects, and the boxes from their outputs. Include only from
// .cpp files, as nn/model.h. The method is FCOS: Tian et al. 2019, arXiv:1904.01355; every number
// is that of torchvision.models.detection.fcos.
#include <cstdint>
#include <vector>

#include "nn/detection_model.h"

namespace cytra::nn {

/// The object that each place has to find: the smallest of those whose centre is nearer than
/// `center_sampling_radius` strides along both axes, that it lies in, and whose farthest side is 4
/// to 8 strides away (the first level: 0 to 8; the last: 4 or more).
/// Shape: corners (M,4), classes (M) -> (5,1,A) float: the class, -1 for none, and the object's
/// corners; A: places of all levels of an image of `size` (H,W), by rows.
at::Tensor fcos_target(const ops::Boxes& objects,
                       const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& size,
                       double center_sampling_radius);

/// Focal loss of the classes, generalized IoU loss of the boxes, cross entropy of the centralness:
/// each is a sum over the places that have an object, divided by their number.
struct FcosLoss {
  at::Tensor classification, box, centerness;
  at::Tensor sum() const { return classification + box + centerness; }
};
/// `levels`: FCOS', the finest first, (N, classes + 5, H / stride, W / stride): logits of the
/// classes; distances to the left, upper, right and lower side in strides, >= 0; a logit of how
/// central the place is. `target`: (N,5,1,A), fcos_target() of each image.
FcosLoss fcos_loss(const std::vector<at::Tensor>& levels,
                   const at::Tensor& target,
                   const std::vector<int64_t>& strides);

/// The objects of each image, from the outputs for padded images: within `size`, none without area,
/// by descending score, on the CPU.
std::vector<ops::Boxes> decode_fcos(const std::vector<at::Tensor>& levels,
                                    const std::vector<int64_t>& strides,
                                    const std::vector<int64_t>& size,
                                    const BoxOptions& options);

}  // namespace cytra::nn
