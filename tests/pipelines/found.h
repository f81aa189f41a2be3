#pragma once
// Boxes in planes as numbers that tests write and read.
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "ops/boxes/boxes.h"

namespace cytra::pipelines {

struct Found {
  float x0, y0, x1, y1, score;
  int64_t label;
};

inline ops::Boxes boxes_of(const std::vector<Found>& all) {
  const auto count = static_cast<int64_t>(all.size());
  const ops::Boxes boxes{at::zeros({count, 4}), at::zeros({count}), at::zeros({count}, at::kLong)};
  float* side = boxes.corners.data_ptr<float>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const float value : {all[i].x0, all[i].y0, all[i].x1, all[i].y1}) *side++ = value;
    boxes.scores.data_ptr<float>()[i] = all[i].score;
    boxes.classes.data_ptr<int64_t>()[i] = all[i].label;
  }
  return boxes;
}

inline std::vector<Found> found_of(const ops::Boxes& boxes) {
  std::vector<Found> all;
  const at::Tensor corners = boxes.corners.contiguous();
  for (int64_t i = 0; i < boxes.count(); ++i) {
    const float* const side = corners.const_data_ptr<float>() + 4 * i;
    all.push_back({side[0],
                   side[1],
                   side[2],
                   side[3],
                   boxes.scores[i].item<float>(),
                   boxes.classes[i].item<int64_t>()});
  }
  return all;
}

inline std::vector<std::vector<Found>> found_of(const std::vector<ops::Boxes>& images) {
  std::vector<std::vector<Found>> all;
  for (const ops::Boxes& boxes : images) all.push_back(found_of(boxes));
  return all;
}

}  // namespace cytra::pipelines
