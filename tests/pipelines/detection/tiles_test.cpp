#include "pipelines/detection/tiles.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "tests/pipelines/found.h"

namespace cytra::pipelines {
namespace {

DetectorOptions tile_options(std::vector<int64_t> roi_size, double overlap) {
  DetectorOptions options;
  options.roi_size = std::move(roi_size);
  options.overlap = {overlap};
  return options;
}

float tile_iou(const Found& a, const Found& b) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
              height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return 0;
  const float both = width * height;
  return both / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both);
}

/// Objects that do not overlap, of 6 to `most` pixels, in 400 x 300.
std::vector<Found> scattered(Rng& rng, double most) {
  std::vector<Found> objects;
  for (int tried = 0; tried < 400; ++tried) {
    const auto width = static_cast<float>(6 + rng.uniform() * (most - 6)),
               height = static_cast<float>(6 + rng.uniform() * (most - 6)),
               x = static_cast<float>(rng.uniform()) * (400 - width),
               y = static_cast<float>(rng.uniform()) * (300 - height);
    const Found one{x, y, x + width, y + height, 0.5F, tried % 2};
    const auto is_near = [&](const Found& other) { return tile_iou(one, other) > 0; };
    if (std::none_of(objects.begin(), objects.end(), is_near)) objects.push_back(one);
  }
  return objects;
}

/// What a detector would find of them in a tile: all with 3 pixels or more in it, sides a bit off.
std::vector<Found> seen_in(const Tile& tile, const std::vector<Found>& objects, Rng& rng) {
  const auto width = static_cast<float>(tile.size()[1]),
             height = static_cast<float>(tile.size()[0]);
  std::vector<Found> found;
  for (const Found& object : objects) {
    const auto side = [&](float value, int64_t begin, float size) {
      const auto error = static_cast<float>(rng.uniform()) - 0.5F;
      return std::clamp(value - static_cast<float>(begin) + error, 0.F, size);
    };
    const Found one{side(object.x0, tile.first[1], width),
                    side(object.y0, tile.first[0], height),
                    side(object.x1, tile.first[1], width),
                    side(object.y1, tile.first[0], height),
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
    const std::vector<Found> objects = scattered(rng, most);
    const std::vector<Tile> tiles = tiles_of({300, 400}, options);
    ASSERT_GT(tiles.size(), 4U);
    std::vector<ops::Boxes> found;
    for (const Tile& tile : tiles) found.push_back(boxes_of(seen_in(tile, objects, rng)));
    const std::vector<Found> all = found_of(join_tiles(tiles, found, 0.5));
    EXPECT_EQ(all.size(), objects.size());
    for (const Found& object : objects) {
      EXPECT_EQ(std::count_if(all.begin(),
                              all.end(),
                              [&](const Found& one) {
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
    const std::vector<Tile> tiles = tiles_of({height, width}, tile_options({96, 128}, 0.25));
    const at::Tensor image = at::zeros({height, width});
    for (const Tile& tile : tiles) tile.of(image).add_(1);
    EXPECT_GE(image.min().item<float>(), 1);
    EXPECT_LE(tiles.back().last[0], height);
    EXPECT_LE(tiles.back().last[1], width);
  }
  EXPECT_EQ(tiles_of({96, 128}, tile_options({96, 128}, 0.25)).size(), 1U);
  EXPECT_EQ(tiles_of({500, 700}, DetectorOptions()).size(), 1U);
  EXPECT_EQ(tiles_of({200, 100}, tile_options({100, 0}, 0.5)).size(), 3U);
  EXPECT_THROW(tiles_of({96, 128}, tile_options({96, 96, 96}, 0.25)), ConfigError);
  EXPECT_THROW(tiles_of({96, 128}, tile_options({64}, 1)), ConfigError);
}

TEST(Tiles, ObjectsAreTakenFromWhereTheyAreWhole) {
  expect_found(tile_options({128, 128}, 0.25), 25, 0.7F);
  expect_found(tile_options({100, 160}, 0.5), 40, 0.7F);
}

TEST(Tiles, LargeObjectsArePutTogether) {
  expect_found(tile_options({96, 96}, 0.25), 90, 0.7F);
  Rng rng(1);
  const std::vector<Found> large{{20, 30, 380, 250, 0.5F, 0}};  // of no tile's size
  const std::vector<Tile> tiles = tiles_of({300, 400}, tile_options({96, 96}, 0.25));
  std::vector<ops::Boxes> found;
  for (const Tile& tile : tiles) found.push_back(boxes_of(seen_in(tile, large, rng)));
  const std::vector<Found> all = found_of(join_tiles(tiles, found, 0.5));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_GT(tile_iou(all[0], large[0]), 0.97F);
}

TEST(Tiles, OfVolumesGiveTheWholeObject) {
  const std::vector<int64_t> size{60, 100, 120};  // Z, Y, X
  const std::vector<Tile> tiles = tiles_of(size, tile_options({32, 48, 64}, 0.25));
  ASSERT_GT(tiles.size(), 12U);
  const at::Tensor image = at::zeros(size);
  for (const Tile& tile : tiles) tile.of(image).add_(1);
  EXPECT_GE(image.min().item<float>(), 1);
  // x0 y0 z0 x1 y1 z1: one that a tile holds, one that none does
  const at::Tensor objects =
      at::tensor({70., 60., 40., 76., 66., 46., 10., 10., 5., 110., 90., 55.}, at::kFloat)
          .view({2, 6});
  std::vector<ops::Boxes> found;
  for (const Tile& tile : tiles) {
    const std::vector<int64_t> back{-tile.first[0], -tile.first[1], -tile.first[2]};
    const ops::Boxes all{ops::clip_boxes(ops::shift_boxes(objects, back), tile.size()),
                         at::tensor({0.9, 0.8}, at::kFloat),
                         at::zeros({2}, at::kLong)};
    found.push_back(all.chosen(ops::box_sides(all.corners).amin(1).gt(0).nonzero().select(1, 0)));
  }
  EXPECT_TRUE(at::equal(join_tiles(tiles, found, 0.5).corners, objects));
}

TEST(Tiles, WhatOneTileFindsStaysAsItIs) {
  const std::vector<Tile> tiles{{{0, 0}, {50, 50}}};
  const std::vector<Found> two{{0, 0, 9, 9, 0.4F, 0}, {0, 0, 9, 9, 0.6F, 0}};
  const std::vector<Found> all = found_of(join_tiles(tiles, {boxes_of(two)}, 0.5));
  ASSERT_EQ(all.size(), 2U);  // it has been through non-maximum suppression
  EXPECT_EQ(all[0].score, 0.4F);
}

}  // namespace
}  // namespace cytra::pipelines
