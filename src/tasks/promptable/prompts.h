#pragma once
// The boxes that a prompted segmenter gets in training and validation.
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "data/sample/sample.h"
#include "nn/square_image.h"

namespace cytra::tasks {

/// The key under which a sample has its boxes: (M,5) x0 y0 x1 y1 in pixels of the square, and the
/// object's number in the target; number 0 means that there is no object.
inline const std::string kPromptBoxes = "prompt_boxes";

struct PromptOptions {
  int64_t side = 256;      // S, of the square
  nn::PixelScale pixels;   // of its images
  int64_t boxes = 16;      // M
  double jitter = 0.1;     // deviation of a corner's coordinate, of the box's side
  double jitter_max = 20;  // pixels, at most
  int64_t min_area = 10;   // pixels: what is smaller is no object
};

/// The boxes (K,5), as above, of all objects of labels (H,W), by their numbers. Takes any device;
/// the result is on the CPU.
at::Tensor boxes_of_labels(const at::Tensor& labels, int64_t min_area);

/// The last transform of every sample: checks image and labels, and brings the image into the
/// square. With `is_training` it does the same with the labels, and draws the boxes of some
/// objects, moved a little, as in the paper's appendix A. Throws: DataError naming the file.
std::shared_ptr<data::Transform> make_prompt_transform(const std::string& x_key,
                                                       const std::string& y_key,
                                                       const PromptOptions& options,
                                                       bool is_training);

}  // namespace cytra::tasks
