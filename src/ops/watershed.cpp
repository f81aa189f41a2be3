#include "ops/watershed.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "ops/volume.h"

namespace cytra::ops {
namespace {

constexpr int32_t kOutside = INT32_MIN;

struct Place {
  uint64_t key;  // value, then age
  int64_t voxel;
};

/// Unsigned numbers in the order of the values; of -0 and 0 the same.
uint32_t in_order(float value) {
  value += 0.0F;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// The lowest key first. Of equal keys (markers of one value) the order is the peer's, as its
/// steps are: children are compared, left before right, all the way down from the root.
class Heap {
 public:
  bool empty() const { return places_.empty(); }
  void push(const Place& place) {
    std::size_t child = places_.size();
    places_.push_back(place);
    while (child > 0) {
      const std::size_t parent = (child - 1) / 2;
      if (!(place.key < places_[parent].key)) break;
      places_[child] = places_[parent];
      child = parent;
    }
    places_[child] = place;
  }
  Place pop() {
    const Place lowest = places_.front(), last = places_.back();
    places_.pop_back();
    const std::size_t count = places_.size();
    if (count == 0) return lowest;
    std::size_t i = 0;
    for (std::size_t child = 1; child < count; child = 2 * i + 1) {
      if (child + 1 < count && places_[child + 1].key < places_[child].key) ++child;
      if (!(places_[child].key < last.key)) break;
      places_[i] = places_[child];
      i = child;
    }
    places_[i] = last;
    return lowest;
  }

 private:
  std::vector<Place> places_;
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
  // A border all round, so that no voxel has to ask whether a neighbour is there.
  const at::Tensor values = at::constant_pad_nd(as_volume(image, at::kFloat), {1, 1, 1, 1, 1, 1});
  at::Tensor labels = as_volume(markers, at::kInt);
  if (mask.defined())
    labels = labels.masked_fill(as_volume(mask, at::kBool).logical_not(), kOutside);
  labels = at::constant_pad_nd(labels, {1, 1, 1, 1, 1, 1}, kOutside);
  std::vector<int64_t> steps;
  for (const auto& [z, y, x] : neighbours(connectivity))
    steps.push_back((z * values.size(1) + y) * values.size(2) + x);

  const float* value = values.const_data_ptr<float>();
  int32_t* label = labels.mutable_data_ptr<int32_t>();
  Heap heap;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if (label[i] != 0 && label[i] != kOutside)
      heap.push({static_cast<uint64_t>(in_order(value[i])) << 32, i});
  }
  uint64_t age = 0;
  while (!heap.empty()) {
    const auto [key, voxel] = heap.pop();
    for (const int64_t step : steps) {
      const int64_t next = voxel + step;
      if (label[next] != 0) continue;
      label[next] = label[voxel];
      const uint64_t level = std::max<uint64_t>(in_order(value[next]), key >> 32);
      heap.push({level << 32 | ++age, next});
    }
  }
  for (int64_t d = 0; d < 3; ++d) labels = labels.narrow(d, 1, labels.size(d) - 2);
  return labels.masked_fill(labels.eq(kOutside), 0).reshape(image.sizes());
}

}  // namespace cytra::ops
