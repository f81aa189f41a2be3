#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra {
namespace {

using metrics::Metric;

/// Class numbers of images as masks of one voxel, (N,3,1,1).
at::Tensor one_voxel(const std::vector<int64_t>& numbers) {
  return at::one_hot(at::tensor(numbers, at::kLong), 3).view({-1, 3, 1, 1});
}

/// sklearn.metrics: accuracy_score, balanced_accuracy_score, f1_score(average="macro").
TEST(ClassNumbers, AreThoseOfSklearn) {
  const metrics::Compared batch{one_voxel({0, 0, 1, 1, 1, 0}), one_voxel({0, 0, 0, 1, 1, 1})};
  const auto value = [&](const std::string& yaml) {
    const auto metric = make<Metric>(yaml);
    metric->update({batch.prediction.slice(0, 0, 4), batch.truth.slice(0, 0, 4)});
    metric->update({batch.prediction.slice(0, 4), batch.truth.slice(0, 4)});
    return metric->compute();
  };
  EXPECT_NEAR(
      value("{_target_: MulticlassAccuracy, average: micro}").at("accuracy"), 4.0 / 6, 1e-12);
  const auto balanced = value("{_target_: MulticlassAccuracy}");
  EXPECT_NEAR(balanced.at("balanced_accuracy"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(balanced.at("recall_class_1"), 2.0 / 3, 1e-12);
  EXPECT_TRUE(std::isnan(balanced.at("recall_class_2")));  // no image is of class 2
  EXPECT_NEAR(value("{_target_: MulticlassF1Score}").at("f1"), 2.0 / 3, 1e-12);
}

}  // namespace
}  // namespace cytra
