#pragma once
// Networks that find objects. Include this only from .cpp files, as nn/model.h.
#include <cstdint>
#include <vector>

#include "nn/model.h"
#include "ops/boxes/boxes.h"

namespace cytra::nn {

struct BoxOptions {
  double score_thresh = 0.2;         // what is not above is left out
  double nms_thresh = 0.6;           // IoU; ops::nms
  int64_t topk_candidates = 1000;    // of each level, ahead of that
  int64_t detections_per_img = 100;  // the best
};

/// A model whose outputs, the levels of all(), have a meaning of its own: it says what they are
/// compared with, and finds the objects in them.
struct DetectionModel : Model {
  using Model::Model;
  virtual int64_t num_classes() const = 0;
  /// What the levels of an image of `size` ([D,]H,W), which divisor() divides, are compared with:
  /// of one shape for images of one size, on the CPU. Places nearer to an object's centre than
  /// `center_sampling_radius`, in steps of their level, learn it. Thread: several at once.
  virtual at::Tensor target(const ops::Boxes& objects,
                            const std::vector<int64_t>& size,
                            double center_sampling_radius) const = 0;
  /// The objects that a target() of one image was made of, as far as it has them, on the CPU.
  virtual ops::Boxes objects_of(const at::Tensor& target) const = 0;
  /// The mean loss of a batch. `target`: (N,...), target() of each image.
  virtual at::Tensor loss(const std::vector<at::Tensor>& levels,
                          const at::Tensor& target) const = 0;
  /// The objects of each image, from the levels for padded images: within `size`, none without a
  /// volume, by descending score, on the CPU.
  virtual std::vector<ops::Boxes> decode(const std::vector<at::Tensor>& levels,
                                         const std::vector<int64_t>& size,
                                         const BoxOptions& options) const = 0;
};

/// The images (N,C,[D,]H,W), mirrored behind their ends so that sides are multiples of divisor().
/// A border of zeros, the mean of a normalized image, would be a bright object on dark ground.
at::Tensor padded(const DetectionModel& model, const at::Tensor& images);

/// The objects of each image (N,C,[D,]H,W) of any sides.
std::vector<ops::Boxes> find_boxes(DetectionModel& model,
                                   const at::Tensor& images,
                                   const BoxOptions& options);

}  // namespace cytra::nn
