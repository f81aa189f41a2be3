#include "inference/outputs/objects.h"

#include <ATen/ATen.h>

#include "data/sample/image_tensor.h"

namespace cytra::inference {

ResultObjects::ResultObjects(at::Tensor labels,
                             int64_t first,
                             std::vector<int32_t> classes,
                             int64_t channel)
    : labels_(std::move(labels)), first_(first), channel_(channel), classes_(std::move(classes)) {}

int64_t ResultObjects::class_of(int64_t label) const {
  return classes_.empty() ? channel_ : classes_.at(static_cast<std::size_t>(label));
}

const std::vector<io::Polygon>& ResultObjects::outlines(const io::Geometry& geometry) const {
  if (!outlines_) {
    outlines_ = io::trace_labels(data::to_image(labels_.unsqueeze(0), io::Dtype::i32, geometry));
    for (io::Polygon& one : *outlines_) one.label += first_;
  }
  return *outlines_;
}

}  // namespace cytra::inference
