// Part of ops/labels/watershed.h: peaks, the markers of a watershed.
#include <algorithm>
#include <limits>
#include <map>

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/boxes/label_boxes.h"
#include "ops/labels/morphology.h"
#include "ops/labels/volume.h"
#include "ops/labels/watershed.h"

namespace cytra::ops {
namespace {

constexpr float kBelowAll = std::numeric_limits<float>::lowest();

/// The voxels of a mask (Z,Y,X) that are in no cross of faces within the mask.
at::Tensor not_in_opening(const at::Tensor& mask, int64_t dims) {
  const auto shifted = [&](const at::Tensor& from, const Offset& by) {
    at::Tensor to = at::zeros_like(from);
    at::Tensor a = to, b = from;
    for (int64_t d = 0; d < 3; ++d) {
      const int64_t size = from.size(d) - std::abs(by[static_cast<std::size_t>(d)]);
      if (size <= 0) return to;
      a = a.narrow(d, std::max<int64_t>(by[static_cast<std::size_t>(d)], 0), size);
      b = b.narrow(d, std::max<int64_t>(-by[static_cast<std::size_t>(d)], 0), size);
    }
    a.copy_(b);
    return to;
  };
  at::Tensor eroded = mask.clone();
  for (const Offset& offset : neighbours(1)) {
    if (dims == 3 || offset[0] == 0) eroded.logical_and_(shifted(mask, offset));
  }
  at::Tensor opened = eroded.clone();
  for (const Offset& offset : neighbours(1)) opened.logical_or_(shifted(eroded, offset));
  return mask.logical_and(opened.logical_not());
}

/// Places in the box, the highest first. `mask`: undefined, or where to search.
std::vector<int64_t> peaks_of(const at::Tensor& box,
                              const at::Tensor& mask,
                              int64_t dims,
                              int64_t min_distance,
                              float threshold) {
  at::Tensor highest = box.clone();
  maximum_filter(highest, min_distance);
  at::Tensor is_peak = box.eq(highest);
  if (box.numel() > 1) {
    const bool is_flat = mask.defined() ? is_peak.masked_select(mask).all().item<bool>()
                                        : is_peak.all().item<bool>();
    if (is_flat) is_peak = mask.defined() ? not_in_opening(mask, dims) : at::zeros_like(is_peak);
  }
  is_peak.logical_and_(box.gt(threshold));
  const float* value = box.const_data_ptr<float>();
  const bool* found = is_peak.const_data_ptr<bool>();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < box.numel(); ++i) {
    if (found[i]) places.push_back(i);
  }
  std::ranges::stable_sort(places, [&](int64_t a, int64_t b) { return value[a] > value[b]; });
  return places;
}

/// The places, in order, that no earlier chosen one is closer to than `spacing` along every axis:
/// cells of that side hold at most one of these each.
std::vector<int64_t> spaced(const std::vector<int64_t>& places,
                            const at::Tensor& box,
                            int64_t spacing) {
  if (spacing <= 1) return places;
  const auto place_of = [&](int64_t i) {
    return Offset{i / box.stride(0), i / box.size(2) % box.size(1), i % box.size(2)};
  };
  std::map<Offset, Offset> kept;  // by cell
  std::vector<int64_t> result;
  for (const int64_t i : places) {
    const Offset place = place_of(i);
    bool is_free = true;
    for (int64_t code = 0; code < 27 && is_free; ++code) {
      const auto found = kept.find({place[0] / spacing + code / 9 - 1,
                                    place[1] / spacing + code / 3 % 3 - 1,
                                    place[2] / spacing + code % 3 - 1});
      if (found == kept.end()) continue;
      int64_t distance = 0;
      for (std::size_t d = 0; d < 3; ++d)
        distance = std::max(distance, std::abs(found->second[d] - place[d]));
      is_free = distance >= spacing;
    }
    if (!is_free) continue;
    kept[{place[0] / spacing, place[1] / spacing, place[2] / spacing}] = place;
    result.push_back(i);
  }
  return result;
}

}  // namespace

std::vector<int64_t> peak_local_max(const at::Tensor& image, const PeakOptions& options) {
  const at::Tensor volume = as_volume(image, at::kFloat);
  if (volume.numel() == 0) return {};
  const float threshold = options.threshold_abs ? static_cast<float>(*options.threshold_abs)
                                                : volume.min().item<float>();
  if (!options.labels.defined()) {
    return spaced(peaks_of(volume, {}, image.dim(), options.min_distance, threshold),
                  volume,
                  options.min_distance);
  }
  if (options.labels.sizes() != image.sizes())
    throw DataError("labels differ in shape from the image that peaks are searched in");
  const at::Tensor labels = as_volume(options.labels, at::kInt);
  std::vector<int64_t> result;
  for (const auto& [label, bounds] : boxes_of<int32_t>(labels)) {
    const at::Tensor mask = bounds.part_of(labels).eq(label).contiguous();
    const at::Tensor box =
        bounds.part_of(volume).masked_fill(mask.logical_not(), kBelowAll).contiguous();
    for (const int64_t i : spaced(peaks_of(box, mask, image.dim(), options.min_distance, threshold),
                                  box,
                                  options.min_distance)) {
      const int64_t z = bounds.first[0] + i / box.stride(0),
                    y = bounds.first[1] + i / box.size(2) % box.size(1),
                    x = bounds.first[2] + i % box.size(2);
      result.push_back((z * volume.size(1) + y) * volume.size(2) + x);
    }
  }
  return result;
}

}  // namespace cytra::ops
