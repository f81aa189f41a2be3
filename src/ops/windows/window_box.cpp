#include "ops/windows/window_box.h"

#include <algorithm>

namespace cytra::ops {

WindowBox box_of(const WindowGrid& grid, int64_t w) {
  WindowBox box{};
  const std::array<int64_t, 3> place = grid.place(w);
  for (std::size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = grid.axes[d];
    const auto end = [&](int64_t i) {
      return std::min(axis.starts[static_cast<std::size_t>(i)] - axis.before + axis.roi, axis.size);
    };
    const int64_t start = axis.starts[static_cast<std::size_t>(place[d])] - axis.before;
    box.from[d] = std::max<int64_t>(start, 0);
    box.to[d] = std::max(end(place[d]), box.from[d]);
    box.skip[d] = box.from[d] - start;
    box.fresh[d] =
        place[d] == 0 ? box.from[d] : std::clamp(end(place[d] - 1), box.from[d], box.to[d]);
  }
  return box;
}

}  // namespace cytra::ops
