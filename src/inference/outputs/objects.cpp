#include "inference/outputs/objects.h"

#include <ATen/ATen.h>

namespace cytra::inference {

ResultObjects::ResultObjects(at::Tensor labels,
                             int64_t first,
                             std::vector<int32_t> classes,
                             int64_t channel)
    : labels_(std::move(labels)), first_(first), channel_(channel), classes_(std::move(classes)) {}

int64_t ResultObjects::class_of(int64_t label) const {
  return classes_.empty() ? channel_ : classes_.at(static_cast<std::size_t>(label));
}

const std::vector<io::Polygon>& ResultObjects::outlines() const {
  if (!outlines_) {
    ObjectOutlines all;
    all.add(labels_);
    outlines_ = all.finish();
    for (io::Polygon& one : *outlines_) one.label += first_;
  }
  return *outlines_;
}

void ObjectOutlines::add(const at::Tensor& rows) {
  const at::Tensor labels = rows.to(at::kInt).contiguous();
  const auto* const label = reinterpret_cast<const uint32_t*>(labels.const_data_ptr<int32_t>());
  const std::span all(label, static_cast<std::size_t>(labels.numel()));
  is_plane_ = labels.dim() == 2;
  if (is_plane_ || labels.numel() == 0) return tracer_.add(all, labels.size(-1));
  const std::size_t plane = all.size() / static_cast<std::size_t>(labels.size(0));
  for (std::size_t first = 0; first < all.size(); first += plane) {
    tracer_.add(all.subspan(first, plane), labels.size(2));
    tracer_.end_plane();
  }
}

std::vector<io::Polygon> ObjectOutlines::finish() {
  if (is_plane_) tracer_.end_plane();
  return tracer_.take();
}

}  // namespace cytra::inference
