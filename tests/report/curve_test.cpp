#include "report/curve.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/svg.h"

namespace cytra::report {
namespace {

TEST(Curve, KeepsMeansAndExtremesInLittleMemory) {
  Curve curve;
  double sum = 0;
  for (int i = 0; i < 123'457; ++i) {
    const double value = i == 77'777 ? 50 : i == 99'999 ? -50 : std::sin(i);
    sum += value;
    curve.add(i, value);
  }
  curve.add(123'457, std::nan(""));
  EXPECT_LE(curve.pieces().size(), 300U);
  EXPECT_GE(curve.pieces().size(), 150U);
  Curve::Piece all;
  double before = -1;
  for (const Curve::Piece& piece : curve.pieces()) {
    EXPECT_GT(piece.mean_x(), before);
    before = piece.mean_x();
    all.add(piece);
  }
  EXPECT_EQ(all.count, 123'457);
  EXPECT_EQ(all.low, -50);
  EXPECT_EQ(all.high, 50);
  EXPECT_NEAR(all.y, sum, 1e-6);
  EXPECT_DOUBLE_EQ(all.mean_x(), 123'456 / 2.0);
  EXPECT_EQ(curve.not_finite(), 1);
  EXPECT_TRUE(std::isnan(curve.last()));
}

TEST(PlotSvg, EveryCurveHasItsColour) {
  const Curve curve;
  const auto colours = [&](const std::vector<std::string>& names) {
    std::vector<std::pair<std::string, const Curve*>> curves;
    for (const std::string& name : names) curves.emplace_back(name, &curve);
    return colours_of(curves);
  };
  EXPECT_EQ(colours({"train/loss", "train/loss_step", "val/loss"}), (std::vector<int>{0, 5, 1}));
  EXPECT_EQ(colours({"test/dice", "val/dice"}), (std::vector<int>{2, 1}));
  std::vector<std::string> classes;
  for (int i = 0; i < 12; ++i) classes.push_back("val/dice_" + std::to_string(i));
  const std::vector<int> twelve = colours(classes);
  EXPECT_EQ(std::set<int>(twelve.begin(), twelve.end()).size(), 12U);
}

TEST(PlotSvg, DrawsAnyValues) {
  Curve empty, one, same, wide, huge, near;
  near.add(0, 0.1);
  near.add(1, std::nextafter(0.1, 1));
  EXPECT_EQ(plot_svg({{"empty", &empty}}, 0, 5), "");
  one.add(3, 0);
  for (int i = 0; i < 5; ++i) {
    same.add(i, 2);
    wide.add(i, std::pow(10, -i));
    huge.add(i, i * 1e300);
  }
  EXPECT_NE(plot_svg({{"w", &wide}}, 0, 5).find("data-log"), std::string::npos);
  EXPECT_EQ(plot_svg({{"w", &same}}, 0, 5).find("data-log"), std::string::npos);
  for (const Curve* curve : {&one, &same, &wide, &huge, &near}) {
    const std::string svg = plot_svg({{"x", curve}, {"empty", &empty}}, 0, 5);
    EXPECT_EQ(test::elements_of(svg, "polyline").size(), 1U);
    EXPECT_EQ(test::elements_of(svg, "circle").size(), curve->pieces().size());
    for (const char* wrong : {"nan", "inf"}) EXPECT_EQ(svg.find(wrong), std::string::npos) << svg;
  }
}

}  // namespace
}  // namespace cytra::report
