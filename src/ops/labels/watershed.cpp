#include "ops/labels/watershed.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "ops/boxes/label_boxes.h"
#include "ops/labels/morphology.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

constexpr int32_t kOutside = INT32_MIN;

struct QueuedVoxel {
  uint64_t key;  // value, then age
  int64_t voxel;
};

/// Unsigned numbers in the order of the values; -0 and 0 have the same.
uint32_t in_order(float value) {
  value += 0.0F;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// The lowest key first. The order of equal keys (markers of one value) is that of scikit-image,
/// because the steps are the same: the smaller child, of equal ones the left, moves up as long as
/// it is below the last.
class Heap {
 public:
  bool empty() const { return voxels_.empty(); }
  const QueuedVoxel& lowest() const { return voxels_.front(); }
  void push(const QueuedVoxel& voxel) {
    std::size_t child = voxels_.size();
    voxels_.push_back(voxel);
    while (child > 0) {
      const std::size_t parent = (child - 1) / 2;
      if (!(voxel.key < voxels_[parent].key)) break;
      voxels_[child] = voxels_[parent];
      child = parent;
    }
    voxels_[child] = voxel;
  }
  QueuedVoxel pop() {
    const QueuedVoxel lowest = voxels_.front(), last = voxels_.back();
    voxels_.pop_back();
    const std::size_t count = voxels_.size();
    if (count == 0) return lowest;
    std::size_t i = 0;
    for (std::size_t child = 1; child < count; child = 2 * i + 1) {
      if (child + 1 < count && voxels_[child + 1].key < voxels_[child].key) ++child;
      if (!(voxels_[child].key < last.key)) break;
      voxels_[i] = voxels_[child];
      i = child;
    }
    voxels_[i] = last;
    return lowest;
  }

 private:
  std::vector<QueuedVoxel> voxels_;
};

/// What a flood needs of a voxel, side by side in memory, since the next voxel may be anywhere in
/// the image.
struct Voxel {
  uint32_t level;
  int32_t label;
};

/// A volume with a border all round, so that no step has to check whether a neighbour exists.
class Padded {
 public:
  explicit Padded(const at::Tensor& volume)
      : depth_(volume.size(0)), height_(volume.size(1)), width_(volume.size(2)) {}
  int64_t count() const { return (depth_ + 2) * (height_ + 2) * (width_ + 2); }
  int64_t step(const Offset& by) const {
    return (by[0] * (height_ + 2) + by[1]) * (width_ + 2) + by[2];
  }
  /// Calls change(first voxel here, first voxel in the volume, voxels) for each row.
  void for_rows(const auto& change) const {
    for (int64_t row = 0; row < depth_ * height_; ++row)
      change(step({row / height_ + 1, row % height_ + 1, 1}), row * width_, width_);
  }

 private:
  int64_t depth_, height_, width_;
};

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

at::Tensor watershed(const at::Tensor& image,
                     const at::Tensor& markers,
                     const at::Tensor& mask,
                     int64_t connectivity) {
  if (markers.sizes() != image.sizes() || (mask.defined() && mask.sizes() != image.sizes())) {
    throw DataError("watershed: markers or mask differ in shape from the image's [{}]",
                    fmt::join(image.sizes(), ", "));
  }
  connectivity = checked_connectivity(connectivity, image.dim());
  const at::Tensor values = as_volume(image, at::kFloat), given = as_volume(markers, at::kInt),
                   allowed = mask.defined() ? as_volume(mask, at::kBool) : at::Tensor();
  const float* value = values.const_data_ptr<float>();
  const int32_t* marker = given.const_data_ptr<int32_t>();
  const bool* is_allowed = allowed.defined() ? allowed.const_data_ptr<bool>() : nullptr;
  const Padded padded(values);
  std::vector<Voxel> voxels(static_cast<std::size_t>(padded.count()), {0, kOutside});
  Heap heap;
  padded.for_rows([&](int64_t to, int64_t from, int64_t width) {
    for (const int64_t end = from + width; from < end; ++from, ++to) {
      if (is_allowed != nullptr && !is_allowed[from]) continue;
      const uint32_t level = in_order(value[from]);
      voxels[static_cast<std::size_t>(to)] = {level, marker[from]};
      if (marker[from] != 0) heap.push({static_cast<uint64_t>(level) << 32, to});
    }
  });
  std::vector<int64_t> steps;
  for (const Offset& offset : neighbours(connectivity)) steps.push_back(padded.step(offset));
  uint64_t age = 0;
  while (!heap.empty()) {
    const auto [key, voxel] = heap.pop();
    if (!heap.empty()) {  // most likely the next one
      for (const int64_t step : steps)
        __builtin_prefetch(&voxels[static_cast<std::size_t>(heap.lowest().voxel + step)]);
    }
    const int32_t label = voxels[static_cast<std::size_t>(voxel)].label;
    for (const int64_t step : steps) {
      Voxel& next = voxels[static_cast<std::size_t>(voxel + step)];
      if (next.label != 0) continue;
      next.label = label;
      heap.push({std::max<uint64_t>(next.level, key >> 32) << 32 | ++age, voxel + step});
    }
  }
  at::Tensor labels = at::empty(values.sizes(), at::kInt);
  int32_t* out = labels.mutable_data_ptr<int32_t>();
  padded.for_rows([&](int64_t from, int64_t to, int64_t width) {
    for (const int64_t end = to + width; to < end; ++to, ++from) {
      const int32_t label = voxels[static_cast<std::size_t>(from)].label;
      out[to] = label == kOutside ? 0 : label;
    }
  });
  return labels.reshape(image.sizes());
}

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
