#pragma once
// The objects of a label image as boxes, and the targets of a detector.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/sample/sample.h"
#include "nn/detection_model.h"

namespace cytra::tasks {

struct ObjectBoxes {
  std::string x_key = "raw", y_key = "instances";
  std::optional<std::string> class_key = {};
  int64_t in_channels = 1, num_classes = 1, min_size = 2, spatial_dims = 2;

  /// labels (1,[D,]H,W): 0 for none, a number for each object; classes, likewise: 1 to num_classes,
  /// of which an object has the commonest in it; undefined: there is one class. Objects that are
  /// narrower than min_size pixels, as crops leave of them, and those without a class, are left
  /// out. On the CPU. Throws: DataError.
  ops::Boxes of(const at::Tensor& labels, const at::Tensor& classes) const;
};

/// What a detector compares an image of `size` with these objects with.
using MakeDetectionTarget =
    std::function<at::Tensor(const ops::Boxes& objects, const std::vector<int64_t>& size)>;
/// Every sample's last step: checks image and labels, and leaves what `target` makes of them in
/// place of the labels; of an empty one the labels. `text`: equal texts stand for equal targets.
/// Throws: DataError naming the file.
std::shared_ptr<data::Transform> make_detection_transform(const ObjectBoxes& objects,
                                                          MakeDetectionTarget target,
                                                          const std::string& text);

}  // namespace cytra::tasks
