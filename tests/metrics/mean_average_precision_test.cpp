#include "metrics/mean_average_precision.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace cytra::metrics {
namespace {

TEST(MeanAveragePrecision, EqualsPycocotools) {
  const test::Golden golden("detection");
  for (const int64_t most : {100, 20}) {
    const auto& entry = golden.at(fmt::format("map.{}", most));
    MeanAveragePrecision metric(3, most);
    metric.update(
        at::rand({1, 4}), at::rand({1}), at::zeros({1}), at::rand({1, 4}), at::zeros({1}));
    metric.reset();
    for (int image = 0; image < 4; ++image) {
      const auto of = [&](const char* role) {
        return entry.tensor(fmt::format("{}.{}", role, image));
      };
      metric.update(of("boxes"), of("scores"), of("labels"), of("true_boxes"), of("true_labels"));
    }
    const auto results = metric.compute();
    const at::Tensor expected = entry.tensor("values");
    int64_t i = 0;
    for (const char* name : {"map", "map_50", "map_75", "mar", "map_class_0", "map_class_1"})
      EXPECT_NEAR(results.at(name), expected[i++].item<double>(), 1e-9) << name;
    EXPECT_TRUE(std::isnan(results.at("map_class_2")));
  }
}

TEST(MeanAveragePrecision, IsUnknownWithoutObjects) {
  MeanAveragePrecision metric(1);
  EXPECT_TRUE(std::isnan(metric.compute().at("map")));
  metric.update(
      at::zeros({0, 4}), at::zeros({0}), at::zeros({0}), at::rand({2, 4}), at::zeros({2}));
  EXPECT_EQ(metric.compute().at("map"), 0);
  EXPECT_THROW(
      metric.update(
          at::rand({1, 4}), at::rand({1}), at::ones({1}), at::rand({0, 4}), at::zeros({0})),
      std::logic_error);
}

}  // namespace
}  // namespace cytra::metrics
