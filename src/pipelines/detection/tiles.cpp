#include "pipelines/detection/tiles.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "inference/windows.h"
#include "ops/boxes/boxes.h"

namespace cytra::pipelines {
namespace {

constexpr float kAgree = 0.5F;  // share that two boxes of one object have in common, where both see

struct TiledBox {
  Detection box;  // in the image's pixels
  const Tile* tile;
};

float area_of(const Detection& box) {
  return std::max(0.F, box.x1 - box.x0) * std::max(0.F, box.y1 - box.y0);
}

Detection common_part(const Detection& a, const Detection& b) {
  return {std::max(a.x0, b.x0),
          std::max(a.y0, b.y0),
          std::min(a.x1, b.x1),
          std::min(a.y1, b.y1),
          a.score,
          a.label};
}

Detection part_in(const Detection& box, const Tile& tile) {
  return common_part(box,
                     {static_cast<float>(tile.x0),
                      static_cast<float>(tile.y0),
                      static_cast<float>(tile.x1),
                      static_cast<float>(tile.y1)});
}

/// The share of `part`, within the area that both tiles see, that `other` covers, too.
float share_in(const TiledBox& part, const TiledBox& other) {
  if (part.box.label != other.box.label || part.tile == other.tile) return 0;
  const float own = area_of(part_in(part.box, *other.tile));
  const Detection both = common_part(part.box, other.box);
  return own > 0 && both.x0 < both.x1 && both.y0 < both.y1 ? area_of(both) / own : 0;
}

/// Parts of one object make one box, the others stay.
std::vector<Detection> join_parts(std::vector<TiledBox> parts) {
  std::vector<Detection> joined;
  std::vector<bool> is_taken(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_taken[i]) continue;
    Detection all = parts[i].box;
    std::vector<std::size_t> members{i};
    for (std::size_t m = 0; m < members.size(); ++m) {
      const TiledBox& one = parts[members[m]];
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        if (is_taken[j] || share_in(one, parts[j]) < kAgree || share_in(parts[j], one) < kAgree)
          continue;
        is_taken[j] = true;
        members.push_back(j);
        const Detection& more = parts[j].box;
        all = {std::min(all.x0, more.x0),
               std::min(all.y0, more.y0),
               std::max(all.x1, more.x1),
               std::max(all.y1, more.y1),
               std::max(all.score, more.score),
               all.label};
      }
    }
    joined.push_back(all);
  }
  return joined;
}

std::vector<Detection> suppress(const std::vector<Detection>& all, double iou_threshold) {
  const auto count = static_cast<int64_t>(all.size());
  const at::Tensor corners = at::empty({count, 4}), scores = at::empty({count}),
                   classes = at::empty({count}, at::kLong);
  float* side = corners.data_ptr<float>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const float value : {all[i].x0, all[i].y0, all[i].x1, all[i].y1}) *side++ = value;
    scores.data_ptr<float>()[i] = all[i].score;
    classes.data_ptr<int64_t>()[i] = all[i].label;
  }
  const at::Tensor kept = ops::nms(corners, scores, classes, iou_threshold);
  std::vector<Detection> best;
  for (int64_t i = 0; i < kept.numel(); ++i)
    best.push_back(all[static_cast<std::size_t>(kept.const_data_ptr<int64_t>()[i])]);
  return best;
}

}  // namespace

std::vector<Tile> tiles_of(int64_t height, int64_t width, const DetectorOptions& options) {
  inference::SlidingWindowOptions windows;
  windows.roi_size = options.roi_size;
  windows.overlap = options.overlap;
  windows.check();
  const inference::WindowLayout layout = inference::layout_windows({height, width}, windows);
  std::vector<Tile> tiles;
  for (const int64_t y : layout.starts[0]) {
    for (const int64_t x : layout.starts[1]) {
      tiles.push_back(
          {y, x, std::min(y + layout.roi[0], height), std::min(x + layout.roi[1], width)});
    }
  }
  return tiles;
}

float clearance(const Tile& tile, const Detection& box, int64_t height, int64_t width) {
  float least = INFINITY;
  if (tile.y0 > 0) least = std::min(least, box.y0 - static_cast<float>(tile.y0));
  if (tile.x0 > 0) least = std::min(least, box.x0 - static_cast<float>(tile.x0));
  if (tile.y1 < height) least = std::min(least, static_cast<float>(tile.y1) - box.y1);
  if (tile.x1 < width) least = std::min(least, static_cast<float>(tile.x1) - box.x1);
  return least;
}

std::vector<Detection> join_tiles(const std::vector<Tile>& tiles,
                                  std::vector<std::vector<Detection>> found,
                                  double iou_threshold) {
  if (tiles.size() == 1) return std::move(found.front());
  int64_t height = 0, width = 0;
  for (const Tile& tile : tiles) {
    height = std::max(height, tile.y1);
    width = std::max(width, tile.x1);
  }
  std::vector<TiledBox> whole, parts;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    for (Detection& box : found[t]) {
      box.x0 += static_cast<float>(tiles[t].x0);
      box.x1 += static_cast<float>(tiles[t].x0);
      box.y0 += static_cast<float>(tiles[t].y0);
      box.y1 += static_cast<float>(tiles[t].y0);
      const auto holds_all = [&](const Tile& tile) {
        return clearance(tile, box, height, width) >= kLeastClearance;
      };
      if (holds_all(tiles[t])) {
        whole.push_back({box, &tiles[t]});
      } else if (std::none_of(tiles.begin(), tiles.end(), holds_all)) {
        parts.push_back({box, &tiles[t]});
      }
    }
  }
  const auto is_known = [&](const TiledBox& part) {
    return std::any_of(whole.begin(), whole.end(), [&](const TiledBox& other) {
      return share_in(part, other) >= kAgree;
    });
  };
  parts.erase(std::remove_if(parts.begin(), parts.end(), is_known), parts.end());
  std::vector<Detection> all = join_parts(std::move(parts));
  for (const TiledBox& one : whole) all.push_back(one.box);
  return suppress(all, iou_threshold);
}

}  // namespace cytra::pipelines
