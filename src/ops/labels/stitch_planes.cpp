#include "ops/labels/stitch_planes.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/lists.h"

namespace cytra::ops {

at::Tensor PlaneStitcher::add(const at::Tensor& plane) {
  const at::Tensor labels = plane.to(at::kInt).contiguous().clone();
  const int64_t pixels = labels.numel();
  int32_t* const here = labels.mutable_data_ptr<int32_t>();
  const int32_t* const above = above_.defined() ? above_.const_data_ptr<int32_t>() : nullptr;
  std::map<int32_t, int64_t> sizes;
  std::map<std::pair<int32_t, int32_t>, int64_t> common;  // (here, above)
  for (int64_t i = 0; i < pixels; ++i) {
    if (here[i] == 0) continue;
    ++sizes[here[i]];
    if (above != nullptr && above[i] != 0) ++common[{here[i], above[i]}];
  }
  std::map<int32_t, double> largest;  // share of an object above with any here
  const auto share_of = [&](const auto& pair) {
    const auto both = static_cast<double>(pair.second);
    const auto all = static_cast<double>(sizes.at(pair.first.first) +
                                         sizes_above_.at(pair.first.second) - pair.second);
    return both / all >= threshold_ ? both / all : 0;
  };
  for (const auto& pair : common) {
    double& most = largest[pair.first.second];
    most = std::max(most, share_of(pair));
  }
  std::map<int32_t, std::pair<double, int32_t>> joined;  // share and number above, by number here
  for (const auto& pair : common) {
    const double share = share_of(pair);
    auto& best = joined[pair.first.first];
    if (share > best.first && share == largest.at(pair.first.second))
      best = {share, pair.first.second};
  }
  std::map<int32_t, int32_t> numbers;
  for (const auto& [number, count] : sizes) {
    const auto found = joined.find(number);
    const bool goes_on = found != joined.end() && found->second.first > 0;
    numbers[number] = goes_on ? found->second.second : ++last_;
  }
  sizes_above_.clear();
  for (int64_t i = 0; i < pixels; ++i) {
    if (here[i] == 0) continue;
    here[i] = numbers.at(here[i]);
    ++sizes_above_[here[i]];
  }
  return above_ = labels;
}

at::Tensor stitch_planes(const at::Tensor& labels, int64_t axis, double threshold) {
  if (labels.numel() == 0) return labels;
  PlaneStitcher stitcher(threshold);
  return at::stack(
      mapped(labels.unbind(axis), [&](const at::Tensor& plane) { return stitcher.add(plane); }),
      axis);
}

}  // namespace cytra::ops
