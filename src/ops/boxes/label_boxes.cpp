#include "ops/boxes/label_boxes.h"

#include <algorithm>
#include <unordered_map>

#include <ATen/ATen.h>

namespace cytra::ops {

at::Tensor Box::part_of(const at::Tensor& volume) const {
  at::Tensor part = volume;
  for (std::size_t d = 0; d < 3; ++d)
    part = part.narrow(static_cast<int64_t>(d), first[d], size(d));
  return part;
}

template <class T>
std::vector<std::pair<T, Box>> boxes_of(const at::Tensor& volume) {
  const T* data = volume.const_data_ptr<T>();
  const int64_t depth = volume.size(0), height = volume.size(1), width = volume.size(2);
  std::unordered_map<T, Box> boxes;
  for (int64_t z = 0; z < depth; ++z) {
    for (int64_t y = 0; y < height; ++y, data += width) {
      for (int64_t x = 0; x < width;) {  // a run of one value at a time
        const T value = data[x];
        const int64_t begin = x++;
        while (x < width && data[x] == value) ++x;
        if (!(value < 0 || value > 0)) continue;  // the background is 0, and NaN
        Box& box = boxes[value];
        box.first = {
            std::min(box.first[0], z), std::min(box.first[1], y), std::min(box.first[2], begin)};
        box.last = {z, std::max(box.last[1], y), std::max(box.last[2], x - 1)};
      }
    }
  }
  std::vector<std::pair<T, Box>> sorted(boxes.begin(), boxes.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  return sorted;
}

template std::vector<std::pair<float, Box>> boxes_of<float>(const at::Tensor&);
template std::vector<std::pair<int32_t, Box>> boxes_of<int32_t>(const at::Tensor&);

}  // namespace cytra::ops
