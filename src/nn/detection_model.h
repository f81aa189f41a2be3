#pragma once
// Networks that find objects. Include this only from .cpp files, as nn/model.h.
#include <cstdint>
#include <vector>

#include "nn/model.h"

namespace cytra::nn {

/// Objects of one image: (K,4) float as x0 y0 x1 y1, x1 and y1 exclusive, in pixels; scores (K)
/// float, of predictions alone; classes (K) int64, from 0.
struct Boxes {
  at::Tensor corners, scores, classes;
};

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
  /// The tensor that the levels of an image (height,width) are compared with, on the CPU.
  /// divisor() divides the sides; images of one size have targets of one shape. Places within
  /// `center_sampling_radius`, in steps of their level, of an object's centre learn this object.
  /// Thread: several at once.
  virtual at::Tensor target(const Boxes& objects,
                            int64_t height,
                            int64_t width,
                            double center_sampling_radius) const = 0;
  /// The mean loss of a batch. `target`: (N,...), target() of each image.
  virtual at::Tensor loss(const std::vector<at::Tensor>& levels,
                          const at::Tensor& target) const = 0;
  /// The objects of each padded image, from its levels: within (height,width), none without area,
  /// by descending score, on the CPU.
  virtual std::vector<Boxes> decode(const std::vector<at::Tensor>& levels,
                                    int64_t height,
                                    int64_t width,
                                    const BoxOptions& options) const = 0;
};

/// The images (N,C,H,W), mirrored to the right and below so that sides are multiples of divisor().
/// A border of zeros (the mean of a normalized image) would look like a bright object on a dark
/// background.
at::Tensor padded(const DetectionModel& model, const at::Tensor& images);

/// The objects of each image (N,C,H,W) of any sides.
std::vector<Boxes> find_boxes(DetectionModel& model,
                              const at::Tensor& images,
                              const BoxOptions& options);

}  // namespace cytra::nn
