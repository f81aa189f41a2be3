#pragma once
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nn/square_image.h"
#include "pipelines/batch_segment/batch_segment.h"
#include "pipelines/detection/tiles.h"

namespace cytra::pipelines {

/// An image on its way.
struct SegmentWork {
  SegmentInput input;
  std::string content;
  bool is_over = false;    // it failed, or was there before
  at::Tensor image;        // (C,H,W) uint8 or float32
  nn::SquareImage square;  // its image is undefined where the embedding is known
  ops::Boxes found;
  at::Tensor embedding;           // (1,C,s,s)
  bool is_new_embedding = false;  // it is to be kept
  at::Tensor logits;              // (objects,h,w), on the CPU
  /// A large image in tiles, each with its square and the objects that it holds best; the last one
  /// is the whole image, for objects that no tile holds. Empty: it is not cut.
  std::vector<SegmentWork> parts;
  Tile tile;                     // a part's place
  std::vector<int64_t> objects;  // and its objects' numbers in the whole
  SegmentWork* whole = nullptr;  // and that image, while it is computed

  int64_t bytes() const {
    int64_t sum = 0;
    for (const at::Tensor* one : {&image, &square.image, &embedding, &logits})
      if (one->defined()) sum += static_cast<int64_t>(one->nbytes());
    for (const SegmentWork& part : parts) sum += part.bytes();
    return sum;
  }
};
using SegmentWorks = std::vector<SegmentWork*>;

/// The parts of an image that are encoded: the image itself, or its tiles.
inline SegmentWorks units_of(SegmentWork& work) {
  SegmentWorks units;
  for (SegmentWork& part : work.parts) units.push_back(&part);
  if (units.empty()) units.push_back(&work);
  return units;
}

}  // namespace cytra::pipelines
