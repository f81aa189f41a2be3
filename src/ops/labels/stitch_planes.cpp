#include "ops/labels/stitch_planes.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ATen.h>

namespace cytra::ops {

at::Tensor stitch_planes(const at::Tensor& labels, int64_t axis, double threshold) {
  at::Tensor result = labels.transpose(0, axis).to(at::kInt).contiguous().clone();
  const int64_t planes = result.size(0), pixels = planes == 0 ? 0 : result[0].numel();
  int32_t* const data = result.mutable_data_ptr<int32_t>();
  int32_t last = 0;                   // the largest number that is given
  std::map<int32_t, int64_t> before;  // pixels of the objects in the plane before
  for (int64_t z = 0; z < planes; ++z) {
    int32_t* const here = data + z * pixels;
    const int32_t* const above = here - (z > 0 ? pixels : 0);
    std::map<int32_t, int64_t> sizes;
    std::map<std::pair<int32_t, int32_t>, int64_t> common;  // (here, above)
    for (int64_t i = 0; i < pixels; ++i) {
      if (here[i] == 0) continue;
      ++sizes[here[i]];
      if (z > 0 && above[i] != 0) ++common[{here[i], above[i]}];
    }
    std::map<int32_t, double> largest;  // share of an object above with any here
    const auto share_of = [&](const auto& pair) {
      const auto both = static_cast<double>(pair.second);
      const auto all = static_cast<double>(sizes.at(pair.first.first) +
                                           before.at(pair.first.second) - pair.second);
      return both / all >= threshold ? both / all : 0;
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
      numbers[number] = goes_on ? found->second.second : ++last;
    }
    before.clear();
    for (int64_t i = 0; i < pixels; ++i) {
      if (here[i] == 0) continue;
      here[i] = numbers.at(here[i]);
      ++before[here[i]];
    }
  }
  return result.transpose(0, axis).contiguous();
}

}  // namespace cytra::ops
