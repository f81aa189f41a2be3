#include "data/transforms/fundus/conics.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/rng.h"

namespace cytra::data::fundus {
namespace {

std::vector<Point> points_on(const Ellipse& e, int count, double from, double to, double noise) {
  std::vector<Point> points;
  Rng rng(1);
  for (int i = 0; i < count; ++i) {
    const double t = from + (to - from) * i / count, c = std::cos(e.angle), s = std::sin(e.angle);
    const double u = e.major * std::cos(t), v = e.minor * std::sin(t);
    points.push_back({static_cast<float>(e.x + c * u - s * v + noise * rng.normal()),
                      static_cast<float>(e.y + s * u + c * v + noise * rng.normal())});
  }
  return points;
}

TEST(FundusConics, FitEllipseIsThatOfOpenCv) {
  const auto golden =
      nlohmann::json::parse(read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/fundus.json"));
  ASSERT_GE(golden["fits"].size(), 8U);
  for (const auto& fit : golden["fits"]) {
    std::vector<Point> points;
    for (const auto& p : fit["points"]) points.push_back({p[0].get<float>(), p[1].get<float>()});
    const Ellipse ellipse = fit_ellipse(points);
    // Both minimise something else: they differ by less than the noise moves them.
    const double tolerance = 0.02 + 0.3 * fit["noise"].get<double>();
    EXPECT_NEAR(ellipse.x, fit["x"].get<double>(), tolerance);
    EXPECT_NEAR(ellipse.y, fit["y"].get<double>(), tolerance);
    EXPECT_NEAR(ellipse.major, fit["major"].get<double>(), tolerance);
    EXPECT_NEAR(ellipse.minor, fit["minor"].get<double>(), tolerance);
    EXPECT_NEAR(std::sin(ellipse.angle - fit["angle"].get<double>()), 0, 0.02);
  }
}

TEST(FundusConics, FitCircleOfAnArcIsExact) {
  Ellipse truth;
  truth.x = 700;
  truth.y = -20;
  truth.major = truth.minor = 150;
  const Ellipse circle = fit_circle(points_on(truth, 60, 0.3, 1.5, 0));
  EXPECT_NEAR(circle.x, 700, 0.01);
  EXPECT_NEAR(circle.y, -20, 0.01);
  EXPECT_NEAR(circle.major, 150, 0.01);
}

TEST(FundusConics, FewPointsOrALineHaveNone) {
  EXPECT_EQ(fit_circle({{0, 0}, {1, 1}}).major, 0);
  EXPECT_EQ(fit_circle({{0, 0}, {1, 1}, {2, 2}, {3, 3}}).major, 0);
  EXPECT_EQ(fit_ellipse({{0, 0}, {1, 1}, {2, 0}, {0, 2}}).major, 0);
  EXPECT_TRUE(find_conic({{0, 0}, {1, 1}, {2, 2}, {3, 3}}, {1, 1}, {}).inliers.empty());
}

TEST(FundusConics, ConsensusKeepsToTheCircleAmongOutliers) {
  Ellipse truth;
  truth.x = 210.3;
  truth.y = 190.6;
  truth.major = truth.minor = 140;
  std::vector<Point> points = points_on(truth, 200, 0, 6.28, 0.3);
  Rng rng(7);
  for (int i = 0; i < 150; ++i) {
    points.push_back(
        {static_cast<float>(rng.uniform(0, 400)), static_cast<float>(rng.uniform(0, 400))});
  }
  RansacOptions options;
  options.min_ellipse_points = 100;
  const Consensus found = find_conic(points, {200, 200}, options);
  EXPECT_NEAR(found.ellipse.x, truth.x, 0.15);
  EXPECT_NEAR(found.ellipse.y, truth.y, 0.15);
  EXPECT_NEAR(found.ellipse.major, truth.major, 0.15);
  EXPECT_EQ(found.ellipse.major, found.ellipse.minor);
  EXPECT_GE(found.inliers.size(), 195U);
  EXPECT_LT(found.rms, 0.6);
}

TEST(FundusConics, ConsensusFindsAnEllipse) {
  Ellipse truth;
  truth.x = 210;
  truth.y = 190;
  truth.major = 160;
  truth.minor = 136;
  truth.angle = 0.6;
  const Consensus found = find_conic(points_on(truth, 300, 0, 6.28, 0.3), {200, 200}, {});
  EXPECT_NEAR(found.ellipse.major, truth.major, 0.2);
  EXPECT_NEAR(found.ellipse.minor, truth.minor, 0.2);
  EXPECT_NEAR(found.ellipse.angle, truth.angle, 0.01);
  RansacOptions circles;
  circles.min_axes_ratio = 1;
  const Consensus circle = find_conic(points_on(truth, 300, 0, 6.28, 0.3), {200, 200}, circles);
  EXPECT_EQ(circle.ellipse.major, circle.ellipse.minor);
}

}  // namespace
}  // namespace cytra::data::fundus
