// Metrics of classes, labels and values of whole images against their peers, however the images are
// batched and shared out; and their mask.
#include <cmath>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/metric.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using metrics::Compared;
using metrics::Metric;

std::shared_ptr<Metric> class_metric(const test::GoldenCase& entry) {
  return make<Metric>(test::component(entry.node.get<std::string>("target"), entry.options()));
}

/// The images `first` to `end`, each of one voxel.
Compared images_of(const test::GoldenCase& entry, int64_t first, int64_t end) {
  const auto voxels = [&](const at::Tensor& rows) {
    return rows.slice(0, first, end).unsqueeze(-1).unsqueeze(-1);
  };
  at::Tensor found = entry.tensor("prediction");
  if (entry.node.get<std::string>("takes") == "masks") {
    found = entry.options().get<bool>("multilabel", false)
                ? found.gt(0.5)
                : at::one_hot(found.argmax(1), found.size(1));
  }
  return {voxels(found), voxels(entry.tensor("truth"))};
}

void expect_values(const std::map<std::string, double>& values, const test::GoldenCase& entry) {
  const at::Tensor expected = entry.tensor("values");
  const std::vector<config::Node>& keys = entry.node.at("keys").list;
  int64_t next = 0;
  for (const config::Node& key : keys) {
    const double value = values.at(key.as<std::string>()), peer = expected[next++].item<double>();
    if (std::isnan(peer)) {
      EXPECT_TRUE(std::isnan(value)) << key.string << " " << value;
    } else {
      EXPECT_NEAR(value, peer, 1e-6 * std::max(1.0, std::abs(peer))) << key.string;
    }
  }
}

TEST(ClassMetrics, EqualTheirPeers) {
  const test::Golden golden("class_metrics");
  for (const test::GoldenCase& entry : golden.cases(38)) {
    SCOPED_TRACE(entry.name);
    const auto metric = class_metric(entry);
    metric->update(images_of(entry, 0, entry.tensor("truth").size(0)));
    expect_values(metric->compute(), entry);
    metric->reset();
    for (const auto& [name, value] : metric->compute()) EXPECT_TRUE(std::isnan(value)) << name;
  }
}

TEST(ClassMetrics, CurvesAndConfusionsEqualTheirPeers) {
  const test::Golden golden("class_metrics");
  int drawn = 0;
  for (const test::GoldenCase& entry : golden.cases(38)) {
    if (!entry.has("curve")) continue;
    SCOPED_TRACE(entry.name);
    ++drawn;
    const int64_t images = entry.tensor("truth").size(0);
    const Compared all = images_of(entry, 0, images);
    const auto ranks = class_metric(entry),
               confusions = make<Metric>("{_target_: ConfusionMatrix}");
    ranks->update(all);
    const auto classes = at::arange(all.truth.size(1)).view({1, -1, 1, 1});
    confusions->update({all.prediction.argmax(1, true).eq(classes), all.truth.ne(0)});
    EXPECT_TRUE(at::equal(confusions->confusion(), entry.tensor("confusion")));
    const std::vector<at::Tensor> curves = ranks->precision_recall();
    ASSERT_EQ(static_cast<int64_t>(curves.size()), all.truth.size(1));
    EXPECT_TRUE(at::allclose(curves.back(), entry.tensor("curve"), 0, 1e-12));
  }
  EXPECT_EQ(drawn, 3);
}

/// Of three processes one gets no image; the others' sums and rows come together.
TEST(ClassMetrics, AreThoseOfUnevenBatchesAndProcesses) {
  const test::Golden golden("class_metrics");
  for (const test::GoldenCase& entry : golden.cases(38)) {
    SCOPED_TRACE(entry.name);
    const int64_t images = entry.tensor("truth").size(0);
    std::vector<std::shared_ptr<Metric>> parts;
    for (int p = 0; p < 3; ++p) {
      parts.push_back(class_metric(entry));
      parts[static_cast<std::size_t>(p)]->expect(entry.tensor("truth").size(1));
    }
    parts[0]->update(images_of(entry, 0, 1));
    parts[1]->update(images_of(entry, 1, images - 5));
    parts[1]->update(images_of(entry, images - 5, images));
    std::vector<at::Tensor> rows;
    for (const auto& part : parts)
      part->gather([&](const at::Tensor& own) { return rows.emplace_back(own); });
    parts[2]->gather([&](const at::Tensor&) { return at::cat(rows); });
    const std::vector<at::Tensor> sums = parts[2]->sums();
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<at::Tensor> more = parts[p]->sums();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(more[i]);
    }
    expect_values(parts[2]->compute(), entry);
  }
}

TEST(ClassMetrics, CountWhereTheMaskIs) {
  const test::Golden golden("class_metrics");
  for (const test::GoldenCase& entry : golden.cases(38)) {
    SCOPED_TRACE(entry.name);
    const auto metric = class_metric(entry), other = class_metric(entry);
    Compared half = images_of(entry, 0, 20);
    metric->update(images_of(entry, 0, 9));
    half.mask = (at::arange(20) < 9).view({20, 1, 1, 1});
    other->update(half);
    const auto expected = metric->compute(), masked = other->compute();
    for (const auto& [name, value] : expected) {
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(masked.at(name))) << name;
      } else {
        EXPECT_NEAR(masked.at(name), value, 1e-12) << name;
      }
    }
  }
}

TEST(ClassMetrics, RankOnlyTargetsOfNoAndYes) {
  const auto metric = make<Metric>("{_target_: MulticlassAUROC}");
  metric->update({at::rand({2, 1, 1, 1}), at::full({2, 1, 1, 1}, 0.5)});
  EXPECT_EQ(message_of<DataError>([&] { metric->compute(); }),
            "roc_auc: a target of 0.5, expected 0 or 1");
}

}  // namespace
}  // namespace cytra
