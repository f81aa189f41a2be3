// Every metric against its peer, however the images are batched and shared out; and its mask.
#include <cmath>
#include <set>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/metric.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using metrics::Compared;
using metrics::Metric;

std::shared_ptr<Metric> metric_of(const test::GoldenCase& entry) {
  return make<Metric>(test::component(entry.node.get<std::string>("target", ""), entry.options()));
}

Compared compared_of(const test::GoldenCase& entry) {
  Compared batch{entry.tensor("prediction"), entry.tensor("truth")};
  if (const config::Node* spacing = entry.node.find_direct("spacing")) {
    for (const config::Node& image : spacing->list) {
      batch.spacing_um.emplace_back();
      for (const config::Node& size : image.list)
        batch.spacing_um.back().push_back(size.as<double>());
    }
  }
  return batch;
}

Compared image_of(const Compared& batch, int64_t n) {
  Compared image{batch.prediction.slice(0, n, n + 1), batch.truth.slice(0, n, n + 1)};
  if (batch.mask.defined()) image.mask = batch.mask.slice(0, n, n + 1);
  if (!batch.spacing_um.empty()) image.spacing_um = {batch.spacing_um[static_cast<std::size_t>(n)]};
  return image;
}

void expect_near(double value, double expected, const std::string& name) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << name << " " << value;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(value, expected) << name;
  } else {  // the peers compute in float32
    EXPECT_NEAR(value, expected, 2e-5 * std::max(1.0, std::abs(expected))) << name;
  }
}

void expect_equal(const std::map<std::string, double>& values,
                  const std::map<std::string, double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (const auto& [name, value] : expected) expect_near(values.at(name), value, name);
}

class EveryMetric : public testing::TestWithParam<const char*> {};

TEST_P(EveryMetric, EqualsItsPeer) {
  const test::Golden golden(std::string("metrics_") + GetParam());
  for (const test::GoldenCase& entry : golden.cases(29)) {
    SCOPED_TRACE(entry.name);
    const auto metric = metric_of(entry);
    metric->update(compared_of(entry));
    std::map<std::string, double> expected;
    const at::Tensor values = entry.tensor("values");
    int64_t next = 0;
    for (const config::Node& key : entry.node.at("keys").list)
      expected[key.as<std::string>()] = values[next++].item<double>();
    expect_equal(metric->compute(), expected);
  }
}

TEST_P(EveryMetric, IsTheSameOverUnevenBatchesAndProcesses) {
  const test::Golden golden(std::string("metrics_") + GetParam());
  for (const test::GoldenCase& entry : golden.cases(29)) {
    SCOPED_TRACE(entry.name);
    const Compared batch = compared_of(entry);
    const int64_t channels = batch.truth.size(1), images = batch.truth.size(0);
    const auto whole = metric_of(entry);
    whole->update(batch);
    // Of three processes one gets no image.
    std::vector<std::shared_ptr<Metric>> parts{
        metric_of(entry), metric_of(entry), metric_of(entry)};
    for (const auto& part : parts) part->expect(channels);
    for (int64_t n = 0; n < images; ++n) parts[n == 0 ? 0 : 1]->update(image_of(batch, n));
    const std::vector<at::Tensor> sums = parts[2]->sums();
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<at::Tensor> more = parts[p]->sums();
      ASSERT_EQ(more.size(), sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(more[i]);
    }
    expect_equal(parts[2]->compute(), whole->compute());
    whole->reset();
    for (const at::Tensor& sum : whole->sums()) EXPECT_EQ(sum.abs().sum().item<double>(), 0);
  }
}

/// What is predicted where the mask is 0 changes nothing; without the mask it does.
TEST_P(EveryMetric, HonoursTheMask) {
  const test::Golden golden(std::string("metrics_") + GetParam());
  std::set<std::string> seen;
  for (const test::GoldenCase& entry : golden.cases(29)) {
    if (!seen.insert(entry.node.get<std::string>("target", "")).second) continue;
    SCOPED_TRACE(entry.name);
    Compared batch = compared_of(entry);
    batch.mask = at::ones_like(batch.truth.slice(1, 0, 1), at::kBool);
    const auto metric = metric_of(entry);
    metric->update(batch);
    const auto all = metric->compute();
    metric->reset();
    batch.mask.slice(-1, 0, batch.truth.size(-1) / 2).fill_(false);
    metric->update(batch);
    const auto masked = metric->compute();
    metric->reset();
    batch.prediction = at::where(batch.mask, batch.prediction, batch.prediction.roll(1, -2));
    metric->update(batch);
    expect_equal(metric->compute(), masked);
    metric->reset();
    metric->update(compared_of(entry));
    expect_equal(metric->compute(), all);
  }
  EXPECT_GE(seen.size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Inputs, EveryMetric, testing::Values("masks", "objects", "values"));

TEST(Metrics, MeasureInMicrometresWhereTheyAreKnown) {
  at::Tensor truth = at::zeros({1, 1, 8, 8}, at::kBool), prediction = truth.clone();
  truth[0][0][2][2] = true;
  prediction[0][0][2][5] = true;
  const auto hd = make<Metric>("{_target_: HausdorffDistanceMetric}");
  const auto distance = [&](const std::vector<std::vector<double>>& spacing_um) {
    hd->reset();
    hd->update({prediction, truth, {}, spacing_um});
    return hd->compute().at("hd100");
  };
  EXPECT_DOUBLE_EQ(distance({}), 3);
  EXPECT_DOUBLE_EQ(distance({{2, 0.5}}), 1.5);
  EXPECT_DOUBLE_EQ(distance({{0, 0.5}}), 3);
}

TEST(Metrics, SayWhatDoesNotFit) {
  const auto made = [](const std::string& text) {
    return message_of<ConfigError>([&] { make<Metric>(text); });
  };
  EXPECT_NE(
      made("{_target_: ConfusionMatrixMetric, metric_name: sensitivty}").find("'sensitivity'"),
      std::string::npos);
  EXPECT_NE(made("{_target_: SurfaceDiceMetric}").find("class_thresholds"), std::string::npos);
  const at::Tensor small = at::rand({1, 1, 4, 20}), objects = at::ones({1, 2, 4, 4});
  const auto updated = [](const std::string& name, const at::Tensor& image) {
    return message_of<DataError>([&] {
      make<Metric>("{_target_: " + name + "}")->update({image, image});
    });
  };
  EXPECT_NE(updated("SSIMMetric", small).find("win_size"), std::string::npos);
  EXPECT_NE(updated("ObjectF1", objects).find("(N,1,[D,]H,W)"), std::string::npos);
}

TEST(Metrics, PearsonOfAConstantIsNaN) {
  at::manual_seed(5);
  const at::Tensor varied = at::randn({2, 1, 33, 31}) + 1000;
  for (const double constant : {0.1, 1.0 / 3, 255.0, 1e6 + 0.3, -7e-5, 0.0}) {
    for (const char* by_image : {"false", "true"}) {
      for (const bool is_truth : {true, false}) {
        const auto metric =
            make<Metric>(std::string("{_target_: PearsonCorrCoef, by_image: ") + by_image + "}");
        const at::Tensor flat = at::full_like(varied, constant);
        for (int i = 0; i < 7; ++i)
          metric->update(is_truth ? Compared{varied, flat} : Compared{flat, varied});
        EXPECT_TRUE(std::isnan(metric->compute().at("pearson"))) << constant << " " << by_image;
      }
    }
  }
  // One that is not, among others, counts alone; large offsets lose nothing that a float holds.
  const at::Tensor noisy = varied + 0.1 * at::randn_like(varied);
  const auto one = make<Metric>("{_target_: PearsonCorrCoef, by_image: true}"),
             some = make<Metric>("{_target_: PearsonCorrCoef, by_image: true}");
  one->update({noisy, varied});
  some->update({noisy, varied});
  some->update({at::full_like(varied, 0.1), varied});
  EXPECT_EQ(some->compute().at("pearson"), one->compute().at("pearson"));
  const auto pooled = make<Metric>("{_target_: PearsonCorrCoef}");
  pooled->update({noisy, varied});
  EXPECT_NEAR(pooled->compute().at("pearson"), 1 / std::sqrt(1.01), 2e-3);
}

TEST(Metrics, CountsNothingBeforeTheFirstImage) {
  for (const std::string& name : Registry<Metric>::instance().names()) {
    const auto metric = make<Metric>(
        "{_target_: " + name + (name == "SurfaceDiceMetric" ? ", class_thresholds: 1}" : "}"));
    for (const auto& [key, value] : metric->compute()) EXPECT_TRUE(std::isnan(value)) << key;
  }
}

}  // namespace
}  // namespace cytra
