#pragma once
// The objects of a label image as boxes, and the targets of a detector.
#include <cstdint>
#include <functional>
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

  /// labels (1,H,W): 0 for none, a number for each object; classes has the same form, 1 to
  /// num_classes: an object has the most frequent class in it; undefined: there is one class.
  /// Objects narrower than min_size pixels, such as those that a crop cuts, and those without a
  /// class are left out. On the CPU. Throws: DataError.
  nn::Boxes of(const at::Tensor& labels, const at::Tensor& classes) const;
};

/// Makes the target of a detector for an image (height,width) with these objects.
using MakeDetectionTarget =
    std::function<at::Tensor(const nn::Boxes& objects, int64_t height, int64_t width)>;
/// The last transform of every sample: checks image and labels, and replaces the labels by what
/// `target` makes of them; an empty `target` leaves the labels. `text`: equal texts stand for
/// equal targets.
/// Throws: DataError naming the file.
std::shared_ptr<data::Transform> make_detection_transform(const ObjectBoxes& objects,
                                                          MakeDetectionTarget target,
                                                          const std::string& text);

}  // namespace cytra::tasks
