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
  const std::vector<int64_t> divisor = model.divisor();
  const auto rest = [](int64_t side, int64_t unit) { return (unit - side % unit) % unit; };
  const int64_t below = rest(images.size(2), divisor[0]), right = rest(images.size(3), divisor[1]);
  at::Tensor padded = images;
  if (below > 0)
    padded = padded.index_select(
        2, mirrored(images.size(2), images.size(2) + below).to(images.device()));
  if (right > 0)
    padded = padded.index_select(
        3, mirrored(images.size(3), images.size(3) + right).to(images.device()));
  return padded;
}

std::vector<Boxes> find_boxes(DetectionModel& model,
                              const at::Tensor& images,
                              const BoxOptions& options) {
  return model.decode(model.all(padded(model, images)), images.size(2), images.size(3), options);
}

}  // namespace cytra::nn
