#include "pipelines/detection/tiles.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace cytra::pipelines {
namespace {

DetectorOptions tile_options(std::vector<int64_t> roi_size, double overlap) {
  DetectorOptions options;
  options.roi_size = std::move(roi_size);
  options.overlap = {overlap};
  return options;
}

float tile_iou(const Detection& a, const Detection& b) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
              height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return 0;
  const float both = width * height;
  return both / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both);
}

/// Objects that do not overlap, of 6 to `most` pixels, in 400 x 300.
std::vector<Detection> scattered(Rng& rng, double most) {
  std::vector<Detection> objects;
  for (int tried = 0; tried < 400; ++tried) {
    const auto width = static_cast<float>(6 + rng.uniform() * (most - 6)),
               height = static_cast<float>(6 + rng.uniform() * (most - 6)),
               x = static_cast<float>(rng.uniform()) * (400 - width),
               y = static_cast<float>(rng.uniform()) * (300 - height);
    const Detection one{x, y, x + width, y + height, 0.5F, tried % 2};
    const auto is_near = [&](const Detection& other) { return tile_iou(one, other) > 0; };
    if (std::none_of(objects.begin(), objects.end(), is_near)) objects.push_back(one);
  }
  return objects;
}

/// What a detector would find of them in a tile: all with 3 pixels or more in it, sides a bit off.
std::vector<Detection> seen_in(const Tile& tile, const std::vector<Detection>& objects, Rng& rng) {
  const auto width = static_cast<float>(tile.x1 - tile.x0),
             height = static_cast<float>(tile.y1 - tile.y0);
  std::vector<Detection> found;
  for (const Detection& object : objects) {
    const auto side = [&](float value, int64_t begin, float size) {
      const auto error = static_cast<float>(rng.uniform()) - 0.5F;
      return std::clamp(value - static_cast<float>(begin) + error, 0.F, size);
    };
    const Detection one{side(object.x0, tile.x0, width),
                        side(object.y0, tile.y0, height),
                        side(object.x1, tile.x0, width),
                        side(object.y1, tile.y0, height),
                        static_cast<float>(0.5 + 0.4 * rng.uniform()),
                        object.label};
    if (one.x1 - one.x0 >= 3 && one.y1 - one.y0 >= 3) found.push_back(one);
  }
  return found;
}

/// Each object once, near to where it is.
void expect_found(const DetectorOptions& options, double most, float least_iou) {
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Detection> objects = scattered(rng, most);
    const std::vector<Tile> tiles = tiles_of(300, 400, options);
    ASSERT_GT(tiles.size(), 4U);
    std::vector<std::vector<Detection>> found;
    for (const Tile& tile : tiles) found.push_back(seen_in(tile, objects, rng));
    const std::vector<Detection> all = join_tiles(tiles, found, 0.5);
    EXPECT_EQ(all.size(), objects.size());
    for (const Detection& object : objects) {
      EXPECT_EQ(std::count_if(all.begin(),
                              all.end(),
                              [&](const Detection& one) {
                                return one.label == object.label &&
                                       tile_iou(one, object) >= least_iou;
                              }),
                1)
          << object.x0 << " " << object.y0 << " " << object.x1 << " " << object.y1;
    }
  }
}

TEST(Tiles, CoverTheImageAndStayWithinIt) {
  for (const auto& [height, width] : {std::pair{300, 400}, {300, 60}, {96, 96}}) {
    const std::vector<Tile> tiles = tiles_of(height, width, tile_options({96, 128}, 0.25));
    const at::Tensor image = at::zeros({height, width});
    for (const Tile& tile : tiles) tile.of(image).add_(1);
    EXPECT_GE(image.min().item<float>(), 1);
    EXPECT_LE(tiles.back().y1, height);
    EXPECT_LE(tiles.back().x1, width);
  }
  EXPECT_EQ(tiles_of(96, 128, tile_options({96, 128}, 0.25)).size(), 1U);
  EXPECT_EQ(tiles_of(500, 700, DetectorOptions()).size(), 1U);
  EXPECT_EQ(tiles_of(200, 100, tile_options({100, 0}, 0.5)).size(), 3U);
  EXPECT_THROW(tiles_of(96, 128, tile_options({96, 96, 96}, 0.25)), ConfigError);
  EXPECT_THROW(tiles_of(96, 128, tile_options({64}, 1)), ConfigError);
}

TEST(Tiles, ObjectsAreTakenFromWhereTheyAreWhole) {
  expect_found(tile_options({128, 128}, 0.25), 25, 0.7F);
  expect_found(tile_options({100, 160}, 0.5), 40, 0.7F);
}

TEST(Tiles, LargeObjectsArePutTogether) {
  expect_found(tile_options({96, 96}, 0.25), 90, 0.7F);
  Rng rng(1);
  const std::vector<Detection> large{{20, 30, 380, 250, 0.5F, 0}};  // of no tile's size
  const std::vector<Tile> tiles = tiles_of(300, 400, tile_options({96, 96}, 0.25));
  std::vector<std::vector<Detection>> found;
  for (const Tile& tile : tiles) found.push_back(seen_in(tile, large, rng));
  const std::vector<Detection> all = join_tiles(tiles, found, 0.5);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_GT(tile_iou(all[0], large[0]), 0.97F);
}

TEST(Tiles, WhatOneTileFindsStaysAsItIs) {
  const std::vector<Tile> tiles{{0, 0, 50, 50}};
  const std::vector<Detection> two{{0, 0, 9, 9, 0.4F, 0}, {0, 0, 9, 9, 0.6F, 0}};
  const std::vector<Detection> all = join_tiles(tiles, {two}, 0.5);
  ASSERT_EQ(all.size(), 2U);  // it has been through non-maximum suppression
  EXPECT_EQ(all[0].score, 0.4F);
}

}  // namespace
}  // namespace cytra::pipelines
