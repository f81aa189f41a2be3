#include "data/loader/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace cytra {
namespace {

data::SamplerSpec shuffled(std::size_t items) {
  data::SamplerSpec spec;
  spec.items = items;
  spec.shuffle = true;
  return spec;
}

TEST(Sampler, ShufflesEachEpochAnew) {
  const auto spec = shuffled(50);
  const auto first = data::order(spec, 1, 0), second = data::order(spec, 1, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(first, data::order(spec, 2, 0));
  EXPECT_EQ(first, data::order(spec, 1, 0));
  EXPECT_EQ(std::set<std::size_t>(first.begin(), first.end()).size(), 50U);
}

// The place of an image is uniform: chi-square over 8 places, 7 degrees of freedom, p = 1e-4.
TEST(Sampler, ShufflesWithoutBias) {
  std::vector<double> counts(8);
  for (int64_t epoch = 0; epoch < 8000; ++epoch) {
    const auto order = data::order(shuffled(8), 3, epoch);
    ++counts[static_cast<std::size_t>(std::find(order.begin(), order.end(), 5U) - order.begin())];
  }
  double chi = 0;
  for (const double count : counts) chi += (count - 1000) * (count - 1000) / 1000;
  EXPECT_LT(chi, 29.9);
}

TEST(Sampler, AnEpochOfSoManyImagesTakesPassAfterPass) {
  auto spec = shuffled(3);
  spec.images = 8;
  const auto order = data::order(spec, 1, 0);
  ASSERT_EQ(order.size(), 8U);
  EXPECT_EQ(data::count(spec), 8U);
  for (std::size_t pass = 0; pass + 3 <= 8; pass += 3) {
    EXPECT_EQ(std::set<std::size_t>(order.begin() + static_cast<std::ptrdiff_t>(pass),
                                    order.begin() + static_cast<std::ptrdiff_t>(pass + 3))
                  .size(),
              3U);
  }
  spec.images = 2;  // a part of many images, another one in each epoch
  spec.items = 50;
  EXPECT_EQ(data::order(spec, 1, 0).size(), 2U);
  EXPECT_NE(data::order(spec, 1, 0), data::order(spec, 1, 1));
  spec.world_size = 2;
  spec.images = 8;
  EXPECT_EQ(data::count(spec), 4U);
  spec.items = 3;
  spec.weights = {1, 0, 2};
  spec.replacement = false;
  EXPECT_THROW(data::check(spec), ConfigError);
  spec.num_samples = 2;
  data::check(spec);
  EXPECT_EQ(data::order(spec, 1, 0).size(), 4U);
}

// torch: list(DistributedSampler(range(10), num_replicas=4, rank=r, shuffle=False))
TEST(Sampler, SharesAsTorchDoes) {
  data::SamplerSpec spec;
  spec.items = 10;
  spec.world_size = 4;
  const std::vector<std::vector<std::size_t>> expected{{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}};
  const std::vector<std::vector<std::size_t>> unpadded{{0, 4, 8}, {1, 5, 9}, {2, 6}, {3, 7}};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    spec.rank = static_cast<int64_t>(rank);
    spec.pad = true;
    EXPECT_EQ(data::order(spec, 0, 0), expected[rank]);
    spec.pad = false;
    EXPECT_EQ(data::order(spec, 0, 0), unpadded[rank]);
    EXPECT_EQ(data::count(spec), unpadded[rank].size());
    spec.drop = true;  // DistributedSampler(..., drop_last=True)
    EXPECT_EQ(data::order(spec, 0, 0), (std::vector<std::size_t>{rank, rank + 4}));
    spec.drop = false;
  }
}

TEST(Sampler, DrawsByWeight) {
  data::SamplerSpec spec;
  spec.items = 3;
  spec.weights = {1, 0, 4};
  spec.num_samples = 10000;
  std::map<std::size_t, int> counts;
  for (const std::size_t image : data::order(spec, 5, 0)) ++counts[image];
  EXPECT_EQ(counts.count(1), 0U);
  EXPECT_NEAR(counts[2], 8000, 160);  // 4 standard deviations
}

// The first of two drawn without replacement is image i with probability w_i / sum.
TEST(Sampler, DrawsByWeightWithoutReplacement) {
  data::SamplerSpec spec;
  spec.items = 4;
  spec.weights = {1, 2, 0, 5};
  spec.replacement = false;
  spec.num_samples = 2;
  std::map<std::size_t, int> firsts;
  for (int64_t epoch = 0; epoch < 8000; ++epoch) {
    const auto order = data::order(spec, 9, epoch);
    ASSERT_EQ(order.size(), 2U);
    ASSERT_NE(order[0], order[1]);
    ++firsts[order[0]];
  }
  EXPECT_EQ(firsts.count(2), 0U);
  EXPECT_NEAR(firsts[3], 5000, 175);
  EXPECT_NEAR(firsts[1], 2000, 155);
}

TEST(Sampler, RefusesWeightsThatCannotBeDrawnFrom) {
  data::SamplerSpec spec;
  spec.items = 2;
  for (const std::vector<double>& weights :
       {std::vector<double>{0, 0}, std::vector<double>{1, -1}, std::vector<double>{1, NAN}}) {
    spec.weights = weights;
    EXPECT_THROW(data::check(spec), ConfigError);
  }
  spec.weights = {1, 0};
  data::check(spec);
  spec.replacement = false;
  EXPECT_THROW(data::check(spec), ConfigError);
}

}  // namespace
}  // namespace cytra
