#include "ops/labels/watershed.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
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
  template <class Change>
  void for_rows(const Change& change) const {
    for (int64_t row = 0; row < depth_ * height_; ++row)
      change(step({row / height_ + 1, row % height_ + 1, 1}), row * width_, width_);
  }

 private:
  int64_t depth_, height_, width_;
};

}  // namespace

at::Tensor watershed(const at::Tensor& image,
                     const at::Tensor& markers,
                     const at::Tensor& mask,
                     int64_t connectivity) {
  if (markers.sizes() != image.sizes() || (mask.defined() && mask.sizes() != image.sizes())) {
    throw DataError(fmt::format("watershed: markers or mask differ in shape from the image's [{}]",
                                fmt::join(image.sizes(), ", ")));
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

}  // namespace cytra::ops
