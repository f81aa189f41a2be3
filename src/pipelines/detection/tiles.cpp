#include "pipelines/detection/tiles.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "inference/windows/windows.h"

namespace cytra::pipelines {
namespace {

constexpr float kAgree = 0.5F;  // share that two boxes of one object have in common, where both see

/// The corners of one box or tile, in the order of ops::Boxes.
using Corners = std::vector<float>;

struct TiledBox {
  Corners corners;  // in the image's pixels
  float score;
  int64_t label;
  const Tile* tile;
};

Corners corners_of(const Tile& tile) {
  Corners corners;
  for (const std::vector<int64_t>* end : {&tile.first, &tile.last})
    for (auto place = end->rbegin(); place != end->rend(); ++place)
      corners.push_back(static_cast<float>(*place));
  return corners;
}

/// The area or volume of what both have; 0 where they do not meet.
float shared_volume(const Corners& a, const Corners& b) {
  const std::size_t dims = a.size() / 2;
  float volume = 1;
  for (std::size_t d = 0; d < dims; ++d)
    volume *= std::max(0.F, std::min(a[dims + d], b[dims + d]) - std::max(a[d], b[d]));
  return volume;
}

/// The share of `part`, within the area that both tiles see, that `other` covers, too.
float share_in(const TiledBox& part, const TiledBox& other) {
  if (part.label != other.label || part.tile == other.tile) return 0;
  const float own = shared_volume(part.corners, corners_of(*other.tile));
  return own > 0 ? shared_volume(part.corners, other.corners) / own : 0;
}

/// Parts of one object make one box, the others stay.
std::vector<TiledBox> join_parts(const std::vector<TiledBox>& parts) {
  std::vector<TiledBox> joined;
  std::vector<bool> is_taken(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_taken[i]) continue;
    TiledBox all = parts[i];
    const std::size_t dims = all.corners.size() / 2;
    std::vector<std::size_t> members{i};
    for (std::size_t m = 0; m < members.size(); ++m) {
      const TiledBox& one = parts[members[m]];
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        if (is_taken[j] || share_in(one, parts[j]) < kAgree || share_in(parts[j], one) < kAgree)
          continue;
        is_taken[j] = true;
        members.push_back(j);
        for (std::size_t d = 0; d < dims; ++d) {
          all.corners[d] = std::min(all.corners[d], parts[j].corners[d]);
          all.corners[dims + d] = std::max(all.corners[dims + d], parts[j].corners[dims + d]);
        }
        all.score = std::max(all.score, parts[j].score);
      }
    }
    joined.push_back(all);
  }
  return joined;
}

ops::Boxes boxes_of(const std::vector<TiledBox>& all, int64_t dims) {
  const auto count = std::ssize(all);
  const ops::Boxes boxes{
      at::empty({count, 2 * dims}), at::empty({count}), at::empty({count}, at::kLong)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::copy(all[i].corners.begin(),
              all[i].corners.end(),
              boxes.corners.data_ptr<float>() + i * all[i].corners.size());
    boxes.scores.data_ptr<float>()[i] = all[i].score;
    boxes.classes.data_ptr<int64_t>()[i] = all[i].label;
  }
  return boxes;
}

}  // namespace

std::vector<int64_t> Tile::size() const {
  std::vector<int64_t> size;
  for (std::size_t d = 0; d < first.size(); ++d) size.push_back(last[d] - first[d]);
  return size;
}

at::Tensor Tile::of(const at::Tensor& image) const {
  at::Tensor part = image;
  const auto dims = std::ssize(first);
  for (int64_t d = 0; d < dims; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    part = part.slice(d - dims, first[axis], last[axis]);
  }
  return part;
}

std::vector<Tile> tiles_of(const std::vector<int64_t>& size, const DetectorOptions& options) {
  inference::SlidingWindowOptions windows;
  windows.roi_size = options.roi_size;
  windows.overlap = options.overlap;
  windows.check();
  const inference::WindowLayout layout = inference::layout_windows(size, windows);
  std::vector<Tile> tiles{{}};
  for (std::size_t d = 0; d < size.size(); ++d) {
    std::vector<Tile> longer;
    for (const Tile& tile : tiles) {
      for (const int64_t start : layout.starts[d]) {
        Tile& next = longer.emplace_back(tile);
        next.first.push_back(start);
        next.last.push_back(std::min(start + layout.roi[d], size[d]));
      }
    }
    tiles = std::move(longer);
  }
  return tiles;
}

float clearance(const Tile& tile, const float* corners, const std::vector<int64_t>& size) {
  float least = INFINITY;
  const std::size_t dims = size.size();
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t column = dims - 1 - d;  // X comes first
    if (tile.first[d] > 0)
      least = std::min(least, corners[column] - static_cast<float>(tile.first[d]));
    if (tile.last[d] < size[d])
      least = std::min(least, static_cast<float>(tile.last[d]) - corners[dims + column]);
  }
  return least;
}

ops::Boxes join_tiles(const std::vector<Tile>& tiles,
                      const std::vector<ops::Boxes>& found,
                      double iou_threshold) {
  if (tiles.size() == 1) return found.front();
  std::vector<int64_t> size = tiles.front().last;
  for (const Tile& tile : tiles)
    for (std::size_t d = 0; d < size.size(); ++d) size[d] = std::max(size[d], tile.last[d]);
  std::vector<TiledBox> whole, parts;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const at::Tensor corners = ops::shift_boxes(found[t].corners, tiles[t].first).contiguous();
    for (int64_t i = 0; i < found[t].count(); ++i) {
      const float* const box = corners.const_data_ptr<float>() + i * corners.size(1);
      const TiledBox one{Corners(box, box + corners.size(1)),
                         found[t].scores.const_data_ptr<float>()[i],
                         found[t].classes.const_data_ptr<int64_t>()[i],
                         &tiles[t]};
      const auto holds_all = [&](const Tile& tile) {
        return clearance(tile, box, size) >= kLeastClearance;
      };
      if (holds_all(tiles[t])) {
        whole.push_back(one);
      } else if (std::ranges::none_of(tiles, holds_all)) {
        parts.push_back(one);
      }
    }
  }
  const auto is_known = [&](const TiledBox& part) {
    return std::ranges::any_of(
        whole, [&](const TiledBox& other) { return share_in(part, other) >= kAgree; });
  };
  std::erase_if(parts, is_known);
  std::vector<TiledBox> joined = join_parts(parts);
  joined.insert(joined.end(), whole.begin(), whole.end());
  const ops::Boxes all = boxes_of(joined, std::ssize(size));
  return all.chosen(ops::nms(all.corners, all.scores, all.classes, iou_threshold));
}

}  // namespace cytra::pipelines
