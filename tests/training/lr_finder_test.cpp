#include "training/lr_finder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "config/options.h"
#include "tests/support/at_least.h"
#include "tests/support/svg.h"

namespace cytra {
namespace {
using training::LrFinder;
using training::LrFinderOptions;

LrFinderOptions options_of(const std::string& text) {
  return config::parse<LrFinderOptions>(config::parse_yaml(text, "test"));
}

TEST(LrFinder, SuggestsWhatLightningDoes) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/callbacks.json"));
  for (const auto& one : test::at_least(4, golden.at("lr_find"))) {
    SCOPED_TRACE(one.at("name"));
    LrFinder finder(options_of(one.at("options").dump()));
    const auto losses = one.at("losses").get<std::vector<double>>();
    const auto rates = one.at("lr").get<std::vector<double>>();
    const auto smoothed = one.at("smoothed").get<std::vector<double>>();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const double lr = finder.at(7, {static_cast<int64_t>(i), -1, 0, -1}).lr;
      ASSERT_LT(i, rates.size());
      EXPECT_NEAR(lr, rates[i], 1e-12 * rates[i]);
      if (!finder.add(lr, losses[i])) break;
      EXPECT_NEAR(finder.points()[i].smoothed, smoothed[i], 1e-12 * smoothed[i]) << i;
    }
    ASSERT_EQ(finder.points().size(), rates.size()) << "where it ends";
    const std::optional<std::size_t> best = finder.suggestion();
    ASSERT_TRUE(best);
    EXPECT_NEAR(finder.points()[*best].lr, one.at("suggestion"), 1e-12);
    const std::string svg = plot_svg(finder, one.at("options").at("mode") == "exponential");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    const auto lines = test::elements_of(svg, "polyline");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].points().size(), rates.size()) << "the losses";
    EXPECT_EQ(lines[1].points().size(), rates.size()) << "smoothed";
    const test::SvgElement dot = test::elements_of(svg, "circle").at(0);
    EXPECT_EQ(std::pair(dot.number("cx"), dot.number("cy")), lines[1].points().at(*best));
  }
}

TEST(LrFinder, EndsAtALossThatIsNotFinite) {
  LrFinder finder(options_of("{early_stop_threshold: null}"));
  EXPECT_TRUE(finder.add(1e-3, 1e9));
  EXPECT_FALSE(finder.add(1e-2, INFINITY));
  EXPECT_EQ(finder.points().size(), 1U);
  EXPECT_FALSE(finder.suggestion());
}

TEST(LrFinder, RefusesARangeOfNothing) {
  EXPECT_THROW(options_of("{min_lr: 1, max_lr: 0.5}"), ConfigError);
}

}  // namespace
}  // namespace cytra
