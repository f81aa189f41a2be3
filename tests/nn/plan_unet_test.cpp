// The planner's rules against nnU-Net's own: tests/golden/make_plan.py.
#include "nn/plan_unet.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using config::Node;
using nn::Sizes;

template <class T>
std::vector<std::vector<T>> rows_of(const Node& node, std::size_t first = 0) {
  std::vector<std::vector<T>> rows;
  for (const Node& row : node.list) {
    rows.push_back(row.as<std::vector<T>>());
    rows.back().erase(rows.back().begin(),
                      rows.back().begin() + static_cast<std::ptrdiff_t>(first));
  }
  return rows;
}

TEST(PlanNetwork, ChoosesWhatNnUNetChooses) {
  const Node cases = config::load_yaml(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/plan.json");
  ASSERT_EQ(cases.list.size(), 10U);
  for (const Node& one : cases.list) {
    SCOPED_TRACE(one.get<std::string>("name"));
    const auto expected = one.get<std::vector<double>>("spacing");
    nn::DataFacts data;
    const std::size_t first = 3 - expected.size();  // a plane has one slice there
    data.spacings = rows_of<double>(one.at("spacings"), first);
    data.shapes = rows_of<int64_t>(one.at("shapes"), first);
    data.outputs = one.get<int64_t>("classes");
    const std::vector<double> spacing = nn::target_spacing(data);
    for (std::size_t d = 0; d < expected.size(); ++d) EXPECT_NEAR(spacing[d], expected[d], 1e-9);
    const std::vector<double> median = nn::median_shape(data, spacing);
    EXPECT_EQ(median, one.get<std::vector<double>>("median"));
    const nn::UNetPlan plan = nn::plan_unet(data, spacing, median, one.get<double>("memory_gb"));
    EXPECT_EQ(plan.topology.patch, one.get<Sizes>("patch"));
    EXPECT_EQ(plan.topology.strides, rows_of<int64_t>(one.at("strides")));
    EXPECT_EQ(plan.topology.kernels, rows_of<int64_t>(one.at("kernels")));
    EXPECT_EQ(plan.features, one.get<Sizes>("features"));
    EXPECT_EQ(plan.batch_size, one.get<int64_t>("batch_size"));
  }
}

TEST(PlanNetwork, SaysWhenNothingFits) {
  const nn::DataFacts data{{{1, 1, 1}}, {{64, 64, 64}}, 2};
  const std::string message = message_of<ConfigError>([&] {
    nn::plan_unet(data, {1, 1, 1}, {64, 64, 64}, 1e-6);
  });
  EXPECT_NE(message.find("memory_gb"), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra
