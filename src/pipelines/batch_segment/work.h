#pragma once
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nn/square_image.h"
#include "pipelines/batch_segment.h"

namespace cytra::pipelines {

/// An image on its way.
struct SegmentWork {
  SegmentInput input;
  std::string content;
  bool is_over = false;    // it failed, or was there before
  at::Tensor image;        // (C,H,W) uint8 or float32
  nn::SquareImage square;  // its image is undefined where the embedding is known
  std::vector<Detection> found;
  at::Tensor embedding;           // (1,C,s,s)
  bool is_new_embedding = false;  // it is to be kept
  at::Tensor logits;              // (objects,h,w), on the CPU

  int64_t bytes() const {
    int64_t sum = 0;
    for (const at::Tensor* one : {&image, &square.image, &embedding, &logits})
      if (one->defined()) sum += static_cast<int64_t>(one->nbytes());
    return sum;
  }
};
using SegmentWorks = std::vector<SegmentWork*>;

}  // namespace cytra::pipelines
