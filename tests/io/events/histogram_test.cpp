#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "io/events/event_file.h"
#include "tests/support/at_least.h"

namespace cytra {
namespace {

TEST(HistogramOf, IsThatOfTensorBoard) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/callbacks.json"));
  for (const auto& one : test::at_least(5, golden.at("histograms"))) {
    const auto values = one.at("values").get<std::vector<float>>();
    const io::Histogram histogram = io::histogram_of(values);
    EXPECT_EQ(histogram.min, one.at("min"));
    EXPECT_EQ(histogram.max, one.at("max"));
    EXPECT_EQ(histogram.count, one.at("count"));
    EXPECT_NEAR(histogram.sum, one.at("sum"), 1e-12 * std::abs(histogram.sum));
    EXPECT_NEAR(histogram.sum_squares, one.at("sum_squares"), 1e-12 * histogram.sum_squares);
    EXPECT_EQ(histogram.counts, one.at("counts").get<std::vector<double>>());
    EXPECT_EQ(histogram.limits, one.at("limits").get<std::vector<double>>());
  }
}

TEST(HistogramOf, LeavesOutWhatIsNotFinite) {
  const std::vector<float> values{NAN, 1, INFINITY, 1};
  const io::Histogram histogram = io::histogram_of(values);
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.max, 1);
  EXPECT_EQ(histogram.counts, (std::vector<double>{0, 2}));
  const io::Histogram none = io::histogram_of({values.data(), 1});
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.min, 0);
}

}  // namespace
}  // namespace cytra
