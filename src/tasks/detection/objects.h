#pragma once
// The objects of a label image as boxes, and what a detector learns of them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/sample.h"
#include "nn/detection_model.h"

namespace cytra::tasks {

struct ObjectBoxes {
  std::string x_key = "raw", y_key = "instances";
  std::optional<std::string> class_key = {};
  int64_t in_channels = 1, num_classes = 1, min_size = 2;

  /// labels (1,H,W): 0 for none, a number for each object; classes, likewise: 1 to num_classes, of
  /// which an object has the commonest in it; undefined: there is one class. Objects that are
  /// narrower than min_size pixels, as crops leave of them, and those without a class, are left
  /// out. On the CPU. Throws: DataError.
  nn::Boxes of(const at::Tensor& labels, const at::Tensor& classes) const;
};

/// Every sample's last step: checks image and labels, and, with strides, leaves the target of
/// nn::fcos_loss in place of the labels. Throws: DataError naming the file.
std::shared_ptr<data::Transform> make_detection_transform(const ObjectBoxes& objects,
                                                          const std::vector<int64_t>& strides,
                                                          double center_sampling_radius);

}  // namespace cytra::tasks
