#include "ops/labels/distance.h"

#include <cmath>

#include "base/error.h"
#include "tests/support/golden.h"

namespace cytra::ops {
namespace {

std::vector<double> sampling_of(const test::GoldenCase& entry) {
  std::vector<double> sampling;
  const config::Node* given = entry.options().find_direct("sampling");
  if (given == nullptr) return sampling;
  if (given->kind != config::Kind::list) return {given->as<double>()};
  for (const config::Node& step : given->list) sampling.push_back(step.as<double>());
  return sampling;
}

TEST(Distance, EqualsScipy) {
  const test::Golden golden("distance");
  for (const test::GoldenCase& entry : golden.cases(35)) {
    const at::Tensor expected = entry.tensor("out");
    const at::Tensor found = distance_transform(entry.tensor("image"), sampling_of(entry));
    ASSERT_EQ(found.sizes(), expected.sizes()) << entry.name;
    // Squares of voxels are whole numbers, and exact; else a float's few last bits.
    const double tolerance = sampling_of(entry).empty() ? 0 : 4e-7;
    EXPECT_TRUE(found.allclose(expected, tolerance, 0)) << entry.name;
  }
}

/// What is far away, across places where the golden images are too small to look.
TEST(Distance, OfOnePointIsExact) {
  at::Tensor mask = at::ones({301, 407}, at::kBool);
  mask[13][400] = false;
  const at::Tensor y = (at::arange(301, at::kDouble) - 13).unsqueeze(1),
                   x = at::arange(407, at::kDouble) - 400;
  EXPECT_EQ(test::max_difference(distance_transform(mask), (y * y + x * x).sqrt().to(at::kFloat)),
            0);
}

TEST(Distance, OfABatchByTensorOperationsIsTheSame) {
  at::manual_seed(0);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 17, 40}, {2, 5, 9, 12}}) {
    for (const double share : {0.0, 0.5, 0.97, 1.0}) {  // empty and full ones among them
      const at::Tensor masks = at::rand(shape).lt(share);
      const at::Tensor found = distance_transforms(masks);
      ASSERT_EQ(found.scalar_type(), at::kFloat);
      for (int64_t i = 0; i < shape[0]; ++i)
        // at::sqrt may be off by a unit of the last place
        EXPECT_TRUE(found[i].allclose(distance_transform(masks[i]), 2e-7, 0)) << share;
    }
  }
}

TEST(Distance, InStepsIsThatOfTheNearestVoxel) {
  at::manual_seed(1);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{9, 12}, {5, 6, 7}}) {
    const at::Tensor mask = at::rand(shape).lt(0.93);
    const at::Tensor zeros = mask.logical_not().nonzero(), voxels = at::ones(shape).nonzero();
    const at::Tensor apart = (voxels.unsqueeze(1) - zeros.unsqueeze(0)).abs();  // (all,zeros,axes)
    const auto least = [&](const at::Tensor& steps) {
      return std::get<0>(steps.min(1)).to(at::kFloat).view(shape);
    };
    EXPECT_TRUE(step_distance(mask, 1).equal(least(apart.sum(2))));
    EXPECT_TRUE(step_distance(mask, 0).equal(least(std::get<0>(apart.max(2)))));
  }
  EXPECT_TRUE(step_distance(at::ones({3, 4}), 1).eq(INFINITY).all().item<bool>());
}

TEST(Distance, WithoutBackgroundIsInfinite) {
  EXPECT_TRUE(distance_transform(at::ones({3, 4, 5})).eq(INFINITY).all().item<bool>());
  EXPECT_EQ(distance_transform(at::ones({0, 4})).numel(), 0);
  EXPECT_THROW(distance_transform(at::ones({3, 4}), {1, 2, 3}), DataError);
}

}  // namespace
}  // namespace cytra::ops
