#include "nn/detection_model.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace cytra::nn {
namespace {

/// The indices 0 1 2 ... length-1 and back again, `count` in all.
at::Tensor mirrored(int64_t length, int64_t count) {
  const int64_t period = std::max<int64_t>(1, 2 * length - 2);
  const at::Tensor index = at::arange(count).remainder(period);
  return at::minimum(index, period - index);
}

}  // namespace

at::Tensor padded(const DetectionModel& model, const at::Tensor& images) {
  at::Tensor padded = images;
  int64_t axis = 2;
  for (const int64_t unit : model.divisor()) {
    const int64_t side = images.size(axis), rest = (unit - side % unit) % unit;
    if (rest > 0)
      padded = padded.index_select(axis, mirrored(side, side + rest).to(images.device()));
    ++axis;
  }
  return padded;
}

std::vector<ops::Boxes> find_boxes(DetectionModel& model,
                                   const at::Tensor& images,
                                   const BoxOptions& options) {
  return model.decode(model.all(padded(model, images)), images.sizes().slice(2).vec(), options);
}

}  // namespace cytra::nn
