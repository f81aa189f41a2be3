#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "metrics/metric.h"
#include "tests/support/golden.h"

namespace cytra::metrics {
namespace {

std::shared_ptr<Metric> make_map(int64_t classes, int64_t max_detections = 100) {
  const auto metric = make<Metric>(config::parse_yaml(
      fmt::format("{{_target_: MeanAveragePrecision, max_detections: {}}}", max_detections),
      "test"));
  metric->expect(classes);
  return metric;
}

/// An image: boxes, scores, classes; objects and their classes.
Compared one_image(const at::Tensor& boxes,
                   const at::Tensor& scores,
                   const at::Tensor& classes,
                   const at::Tensor& objects,
                   const at::Tensor& kinds) {
  Compared image;
  image.found = {{boxes, scores, classes}};
  image.objects = {{objects, {}, kinds}};
  return image;
}

TEST(MeanAveragePrecision, EqualsPycocotools) {
  const test::Golden golden("detection");
  for (const int64_t most : {100, 20}) {
    const auto& entry = golden.at(fmt::format("map.{}", most));
    const auto metric = make_map(3, most);
    metric->update(one_image(
        at::rand({1, 4}), at::rand({1}), at::zeros({1}), at::rand({1, 4}), at::zeros({1})));
    metric->reset();
    for (int image = 0; image < 4; ++image) {
      const auto of = [&](const char* role) {
        return entry.tensor(fmt::format("{}.{}", role, image));
      };
      metric->update(
          one_image(of("boxes"), of("scores"), of("labels"), of("true_boxes"), of("true_labels")));
    }
    const auto results = metric->compute();
    const at::Tensor expected = entry.tensor("values");
    int64_t i = 0;
    for (const char* name : {"map", "map_50", "map_75", "mar", "map_class_0", "map_class_1"})
      EXPECT_NEAR(results.at(name), expected[i++].item<double>(), 1e-9) << name;
    EXPECT_TRUE(std::isnan(results.at("map_class_2")));
  }
}

TEST(MeanAveragePrecision, OfVolumesEqualsMonai) {
  const test::Golden golden("boxes_3d");
  const auto& entry = golden.at("map");
  const auto metric = make_map(2);
  for (int image = 0; image < 3; ++image) {
    const auto of = [&](const char* role) {
      return entry.tensor(fmt::format("{}.{}", role, image));
    };
    metric->update(
        one_image(of("boxes"), of("scores"), of("labels"), of("true_boxes"), of("true_labels")));
  }
  const auto results = metric->compute();
  const at::Tensor expected = entry.tensor("values");
  int64_t i = 0;
  for (const char* name : {"map", "map_50", "map_75", "mar", "map_class_0", "map_class_1"})
    EXPECT_NEAR(results.at(name), expected[i++].item<double>(), 1e-7)
        << name;  // its recalls are float32
}

/// Each takes every third image, as training/processes shares them out; one gets none. Scores are
/// rounded: many are equal, and their order counts.
TEST(MeanAveragePrecision, IsTheSameOverUnevenSharesOfThreeProcesses) {
  at::manual_seed(0);
  for (const int images : {2, 4, 7}) {
    const auto whole = make_map(2, 15);
    std::vector<std::shared_ptr<Metric>> parts;
    for (int p = 0; p < 3; ++p) parts.push_back(make_map(2, 15));
    for (int i = 0; i < images; ++i) {
      const at::Tensor truth = at::rand({12, 4}) * 40;
      truth.slice(1, 2).add_(truth.slice(1, 0, 2) + 4);
      const at::Tensor found = at::cat({truth + at::randn({12, 4}), truth.flip(0) + 30}),
                       scores = at::rand({24}).mul(4).round() / 4,
                       classes = at::randint(0, 2, {24}), kinds = classes.slice(0, 0, 12);
      whole->update(one_image(found, scores, classes, truth, kinds));
      parts[static_cast<std::size_t>(i % 3)]->update(
          one_image(found, scores, classes, truth, kinds));
    }
    std::vector<at::Tensor> rows;
    for (const auto& part : parts) {
      part->gather([&](const at::Tensor& own) { return rows.emplace_back(own); });
      if (part != parts[0]) parts[0]->sums()[0].add_(part->sums()[0]);
    }
    parts[0]->gather([&](const at::Tensor&) { return at::cat(rows); });
    EXPECT_EQ(parts[0]->compute(), whole->compute()) << images;
    EXPECT_GT(whole->compute().at("map_50"), 0.1) << images;
  }
}

TEST(MeanAveragePrecision, IsUnknownWithoutObjects) {
  const auto metric = make_map(1);
  EXPECT_TRUE(std::isnan(metric->compute().at("map")));
  metric->update(one_image(
      at::zeros({0, 4}), at::zeros({0}), at::zeros({0}), at::rand({2, 4}), at::zeros({2})));
  EXPECT_EQ(metric->compute().at("map"), 0);
  EXPECT_THROW(
      metric->update(one_image(
          at::rand({1, 4}), at::rand({1}), at::ones({1}), at::rand({0, 4}), at::zeros({0}))),
      std::logic_error);
}

// The values are those of pycocotools 2.0.11, whose thresholds are numpy.linspace(0.5, 0.95, 10).
TEST(MeanAveragePrecision, AnIoUOfAThresholdReachesIt) {
  const auto precision = [](double width, double share) {
    const auto metric = make_map(1);
    metric->update(one_image(at::tensor({0., 0., width * share, 1.}).view({1, 4}),
                             at::ones({1}),
                             at::zeros({1}),
                             at::tensor({0., 0., width, 1.}).view({1, 4}),
                             at::zeros({1})));
    return metric->compute().at("map");
  };
  EXPECT_NEAR(precision(20, 0.85), 0.8, 1e-12);
  EXPECT_NEAR(precision(20, 0.5), 0.1, 1e-12);
  EXPECT_NEAR(precision(10, 0.9), 0.9, 1e-12);
  EXPECT_NEAR(precision(20, 0.95), 1, 1e-12);
  EXPECT_NEAR(precision(2000, 0.8495), 0.7, 1e-12);
}

}  // namespace
}  // namespace cytra::metrics
