#include "ops/labels/label_blocks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/star_labels.h"

namespace cytra::ops {
namespace {

/// Ellipsoids of 5 to `most` voxels an axis in an image, some of which touch; the first number
/// wins.
at::Tensor objects_in(const std::vector<int64_t>& image,
                      int64_t count,
                      double most,
                      uint64_t seed) {
  Rng rng(seed);
  at::Tensor labels = at::zeros(image, at::kInt);
  std::vector<at::Tensor> axes;
  for (const int64_t size : image) axes.push_back(at::arange(size, at::kFloat));
  const std::vector<at::Tensor> grid = at::meshgrid(axes, "ij");
  for (int32_t number = 1; number <= count; ++number) {
    at::Tensor distance = at::zeros(image);
    for (std::size_t d = 0; d < image.size(); ++d) {
      const double centre = rng.uniform() * static_cast<double>(image[d]);
      const double radius = 2.5 + rng.uniform() * (most - 5) / 2;
      distance += ((grid[d] - centre) / radius).square();
    }
    labels.masked_fill_(distance.le(1).logical_and(labels.eq(0)), number);
  }
  return labels;
}

at::Tensor flows_of(const at::Tensor& labels) {
  const at::Tensor logit = labels.gt(0).to(at::kFloat) * 12 - 6;
  return at::cat({masks_to_flows(labels) * 5, logit.unsqueeze(0)});
}

at::Tensor stars_of(const at::Tensor& labels, int64_t rays) {
  return at::cat({edt_probability(labels).unsqueeze(0).logit(1e-4),
                  star_distances(labels, make_rays(rays, labels.dim()))});
}

/// Numbers in the order of first voxels.
at::Tensor in_raster_order(const at::Tensor& labels) {
  at::Tensor result = labels.contiguous().clone();
  std::map<int32_t, int32_t> numbers{{0, 0}};
  int32_t* const label = result.mutable_data_ptr<int32_t>();
  for (int64_t v = 0; v < result.numel(); ++v)
    label[v] = numbers.try_emplace(label[v], static_cast<int32_t>(numbers.size())).first->second;
  return result;
}

at::Tensor by_rows(const LabelBlocks::Make& make,
                   const at::Tensor& values,
                   const LabelBlocks::Sizes& sizes,
                   int64_t rows) {
  LabelBlocks blocks(make, values.sizes().slice(1).vec(), "", sizes);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < values.size(1); first += rows)
    parts.push_back(blocks.add(values.narrow(1, first, std::min(rows, values.size(1) - first)))[0]);
  for (at::Tensor more = blocks.rest(); more.defined(); more = blocks.rest())
    parts.push_back(more[0]);
  return at::cat(parts);
}

template <class Operation>
LabelBlocks::Make make_of(const Operation& operation) {
  return
      [operation](const at::Tensor& values, const Part& part) { return operation(values, part); };
}

const LabelBlocks::Sizes kPlane{{110, 100}, {20, 20}, {40, 40}},
    kVolume{{60, 56, 64}, {12, 12, 12}, {24, 24, 24}};

TEST(LabelBlocks, FlowsGiveTheLabelsOfTheWholeImage) {
  FlowsToLabels flows;
  flows.max_size_fraction = 0.02;  // of the image, not of a block
  for (const int64_t rows : {1, 200}) {
    const at::Tensor plane = flows_of(objects_in({200, 231}, 90, 32, static_cast<uint64_t>(rows)));
    const at::Tensor whole = flows(plane);
    EXPECT_GT(whole.max().item<int32_t>(), 50);
    EXPECT_TRUE(by_rows(make_of(flows), plane, kPlane, rows).equal(whole)) << rows;
  }
  flows.max_size_fraction = 0.4;
  const at::Tensor volume = flows_of(objects_in({70, 80, 101}, 90, 20, 4));
  const at::Tensor whole = flows(volume);
  EXPECT_GT(whole.max().item<int32_t>(), 40);
  EXPECT_TRUE(by_rows(make_of(flows), volume, kVolume, 9).equal(whole));
}

TEST(LabelBlocks, StarsGiveTheObjectsOfTheWholeImage) {
  StarsToLabels stars;
  stars.border = {3};
  for (const std::vector<int64_t>& grid : {std::vector<int64_t>{}, {2, 2}}) {
    stars.grid = grid;
    const at::Tensor plane = stars_of(objects_in({230, 301}, 130, 28, 5), 16);
    const at::Tensor whole = in_raster_order(stars(plane));
    EXPECT_GT(whole.max().item<int32_t>(), 60);
    EXPECT_TRUE(by_rows(make_of(stars), plane, kPlane, 37).equal(whole));
  }
  stars.grid = {};
  const at::Tensor volume = stars_of(objects_in({70, 80, 101}, 90, 18, 6), 32);
  const at::Tensor whole = in_raster_order(stars(volume));
  EXPECT_GT(whole.max().item<int32_t>(), 40);
  const at::Tensor found = by_rows(make_of(stars), volume, kVolume, 9);
  EXPECT_TRUE(found.equal(whole));
}

/// The connected values above 0 of what a block sees.
at::Tensor one_object(const at::Tensor& values, const Part& /*part*/) {
  return values[0].gt(0).to(at::kInt);
}

TEST(LabelBlocks, JoinObjectsThatAreLongerThanABlock) {
  at::Tensor values = at::zeros({1, 400, 500});
  values.narrow(2, 30, 12).fill_(1);  // across all bands
  const at::Tensor tall = by_rows(one_object, values, kPlane, 50);
  EXPECT_TRUE(tall.equal(values[0].to(at::kInt)));
  values.zero_();
  values.narrow(1, 150, 9).fill_(1);  // across all blocks of a band
  EXPECT_TRUE(by_rows(one_object, values, kPlane, 400).equal(values[0].to(at::kInt)));
}

TEST(LabelBlocks, NumberWithoutGapsWhateverTheBlocksFind) {
  // Each block gives numbers at random, so that no two agree on what overlaps.
  Rng rng(7);
  const LabelBlocks::Make noise = [&rng](const at::Tensor& values, const Part& part) {
    EXPECT_EQ(part.image, (Offset{1, 300, 310}));
    at::Tensor labels = at::zeros({values.size(1), values.size(2)}, at::kInt);
    for (int32_t number = 1; number <= 40; ++number) {
      const auto y = static_cast<int64_t>(rng.below(static_cast<uint64_t>(values.size(1))));
      const auto x = static_cast<int64_t>(rng.below(static_cast<uint64_t>(values.size(2))));
      labels.slice(0, y, y + 30).slice(1, x, x + 20).fill_(number);
    }
    return in_raster_order(labels);
  };
  const at::Tensor labels = by_rows(noise, at::zeros({1, 300, 310}), kPlane, 11);
  EXPECT_EQ(labels.sizes(), (std::vector<int64_t>{300, 310}));
  const auto numbers = std::get<0>(at::_unique(labels));  // ascending
  EXPECT_TRUE(numbers.equal(at::arange(numbers.size(0), at::kInt)));
}

TEST(LabelBlocks, KeepRowsInAFileWhereTheyAreMany) {
  const std::string folder = std::filesystem::temp_directory_path();
  const std::vector<int64_t> image{29, 300};
  const LabelBlocks::Sizes sizes{{16, 200}, {3, 16}, {5, 16}, 10'000};
  const at::Tensor row = at::ones({1, 1, image[1]});
  LabelBlocks blocks(one_object, image, folder, sizes);
  int64_t rows = 0;
  for (int64_t i = 0; i < image[0]; ++i) {
    const at::Tensor labels = blocks.add(row)[0];
    rows += labels.size(0);
    EXPECT_TRUE(labels.eq(1).all().item<bool>());
  }
  EXPECT_EQ(rows, image[0]);
  EXPECT_THROW(blocks.add(row), DataError);
  EXPECT_THROW(LabelBlocks(one_object, image, folder + "/none", sizes).add(row), IoError);
}

TEST(LabelBlocks, GiveNoMoreRowsThanCameWhereTheseAreLarge) {
  const std::vector<int64_t> image{14, 3000, 3000};  // 9 million voxels a row
  const LabelBlocks::Sizes sizes{{6, 3000, 3000}, {1, 0, 0}, {2, 0, 0}};
  const LabelBlocks::Make rows_apart = [](const at::Tensor& values, const Part& /*part*/) {
    at::Tensor labels = at::zeros(values.sizes().slice(1), at::kInt);
    int32_t number = 0;
    for (int64_t row = 0; row < labels.size(0); ++row)
      if (values[0][row][0][0].item<float>() > 0) labels[row].fill_(++number);
    return labels;
  };
  LabelBlocks blocks(rows_apart, image, "", sizes);
  std::vector<at::Tensor> rows;
  const at::Tensor row = at::zeros({1, 1, image[1], image[2]});
  const auto take = [&](const at::Tensor& labels) {
    EXPECT_LE(labels.size(1), 1);
    rows.push_back(labels[0].flatten(1).amax(1));
  };
  for (int64_t i = 0; i < image[0]; ++i) take(blocks.add(row.fill_(i % 3 == 1 ? 1 : 0)));
  for (at::Tensor more = blocks.rest(); more.defined(); more = blocks.rest()) take(more);
  std::vector<int32_t> expected;
  for (int32_t i = 0; i < image[0]; ++i) expected.push_back(i % 3 == 1 ? i / 3 + 1 : 0);
  EXPECT_TRUE(at::cat(rows).equal(at::tensor(expected, at::kInt)));
}

TEST(KeptRows, StayInTheirFileWhenMemoryIsLetGo) {
  const std::string folder = std::filesystem::temp_directory_path();
  for (const int64_t in_memory : {0, 1'000'000}) {
    const KeptRows kept({7, 3000}, at::kInt, folder, in_memory);
    EXPECT_TRUE(kept.rows.eq(0).all().item<bool>());
    for (int64_t row = 0; row < 7; ++row) {
      kept.rows[row].fill_(row);
      kept.let_go();
    }
    EXPECT_TRUE(kept.rows.select(1, 2999).equal(at::arange(7, at::kInt)));
  }
}

}  // namespace
}  // namespace cytra::ops
