#include "report/line_chart.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "report/memory_chart.h"
#include "tests/support/svg.h"

namespace cytra::report {
namespace {

ChartAxis axis_of(double low, double high, bool is_log = false) {
  ChartAxis axis;
  axis.low = low;
  axis.high = high;
  axis.is_log = is_log;
  return axis;
}

/// Its lines are 100 wide and high, from (10, 20) on.
LineChart square(const ChartAxis& x, const ChartAxis& y) {
  return LineChart({120, 140, 10, 10, 20, 20}, x, y);
}

TEST(LineChart, DrawsValuesAtTheirPlaces) {
  LineChart chart = square(axis_of(1, 100, true), axis_of(-1, 1));
  chart.add_line(2, "a", {{1, -1}, {10, 0}, {100, 1}, {1000, 5}, {0.1, -5}, {-1, 0}});
  chart.add_band(3, {{1, -1}, {100, 0}}, {{1, 0}, {100, 1}});
  chart.add_dot(1, 10, 0.5);
  chart.add_dot(1, 10, 1, "best");
  chart.add_span(0, 10, 100);
  for (const std::string& svg : {chart.element(), chart.file()}) {
    const auto lines = test::elements_of(svg, "polyline");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].attributes.at("class"), "c2");
    const LineChart::Points expected{
        {10, 120}, {60, 70}, {110, 20}, {110, 20}, {10, 120}, {10, 70}};
    EXPECT_EQ(lines[0].points(), expected) << "what lies outside is drawn at the edge";
    const LineChart::Points around{{10, 70}, {110, 20}, {110, 70}, {10, 120}};
    EXPECT_EQ(test::elements_of(svg, "polygon").at(0).points(), around);
    const auto dots = test::elements_of(svg, "circle");
    ASSERT_EQ(dots.size(), 2U);
    EXPECT_EQ(dots[0].number("cx"), 60);
    EXPECT_EQ(dots[0].number("cy"), 45);
    EXPECT_LT(dots[0].number("r"), dots[1].number("r"));
    EXPECT_EQ(test::elements_of(svg, "text").back().text, "best");
    const auto span = test::elements_of(svg, "rect").back();
    EXPECT_EQ(span.number("x"), 60);
    EXPECT_EQ(span.number("width"), 50);
    EXPECT_EQ(span.number("y"), 20);
    EXPECT_EQ(span.number("height"), 100);
  }
}

TEST(LineChart, AFileHasItsOwnColoursAndAnElementThePagesScript) {
  LineChart chart = square(axis_of(0, 5), axis_of(1, 100, true));
  const auto file = test::parse_svg(chart.file()), element = test::parse_svg(chart.element());
  EXPECT_EQ(file.at(0).attributes.at("xmlns"), "http://www.w3.org/2000/svg");
  EXPECT_EQ(file.at(1).name, "style");
  EXPECT_NE(file[1].text.find("polyline.c5{stroke:#"), std::string::npos) << file[1].text;
  EXPECT_EQ(element.at(0).attributes.at("data-x"), "10 110 0 5");
  EXPECT_EQ(element[0].attributes.at("data-y"), "120 20 1 100");
  EXPECT_EQ(element[0].attributes.count("data-log"), 1U);
}

TEST(LineChart, NamesAreEscaped) {
  ChartAxis x = axis_of(0, 1);
  x.title = "<x>";
  LineChart chart = square(x, axis_of(0, 1));
  chart.add_legend(0, 0, "a & b");
  chart.add_line(0, "\"c\" > d", {{0, 0}});
  const std::string svg = chart.file();  // parse_svg() throws for any that is not
  EXPECT_EQ(test::elements_of(svg, "polyline").at(0).attributes.at("data-name"),
            "&quot;c&quot; &gt; d");
  EXPECT_NE(svg.find(">&lt;x&gt;</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">a &amp; b</text>"), std::string::npos) << svg;
}

TEST(LineChart, WithoutPointsItIsAnEmptyFrame) {
  LineChart chart = square(axis_of(0, 1), axis_of(0, 1));
  chart.add_line(0, "none", {});
  chart.add_band(0, {}, {});
  EXPECT_TRUE(test::elements_of(chart.file(), "polyline").empty());
  EXPECT_TRUE(test::elements_of(chart.file(), "polygon").empty());
  EXPECT_FALSE(test::elements_of(chart.file(), "text").empty());
}

TEST(ChartAxis, MarksAreRoundAndInside) {
  using Marks = std::vector<double>;
  EXPECT_EQ(axis_of(0, 100).marks(), (Marks{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis_of(3, 41).marks(), (Marks{10, 20, 30, 40}));
  EXPECT_EQ(axis_of(3, 41, true).marks(), (Marks{5, 10, 20}));
  const Marks decades = axis_of(1e-8, 1, true).marks();
  ASSERT_EQ(decades.size(), 9U);
  for (std::size_t i = 0; i < decades.size(); ++i)
    EXPECT_NEAR(decades[i], std::pow(10, static_cast<double>(i) - 8), 1e-12 * decades[i]);
  for (const auto& [low, high] : {std::pair{0.0, 1e-7}, {-4e300, 4e300}, {0.1, 0.1000001}}) {
    const ChartAxis axis = axis_of(low, high);
    EXPECT_GE(axis.marks().size(), 4U) << low;
    for (const double mark : axis.marks()) EXPECT_TRUE(mark >= low && mark <= high) << mark;
  }
}

TEST(ChartAxis, AnyValuesGetARange) {
  for (const bool is_log : {false, true}) {
    ChartAxis axis;
    axis.is_log = is_log;
    axis.include(5);
    axis.add_margin();
    EXPECT_LT(axis.low, 5);
    EXPECT_GT(axis.high, 5);
    axis.include(500);
    const double low = axis.low;
    axis.add_margin();
    EXPECT_LT(axis.low, low);
    EXPECT_GT(axis.high, 500);
    EXPECT_GT(axis.share(500), axis.share(5));
  }
}

TEST(ChartAxis, LabelsTellMarksApartInFewDigits) {
  const auto labels = [](double low, double high) {
    ChartAxis axis;
    axis.include(low);
    axis.include(high);
    axis.add_margin();
    std::set<std::string> texts;
    for (const double mark : axis.marks()) texts.insert(axis.text(mark));
    EXPECT_EQ(texts.size(), axis.marks().size()) << low;
    for (const std::string& text : texts) {
      EXPECT_LE(text.size(), 8U) << text;
      EXPECT_GE(axis.room(), 8.5 * static_cast<double>(text.size()));
    }
    return texts;
  };
  using Texts = std::set<std::string>;
  EXPECT_EQ(labels(0, 0), (Texts{"0", "0.2", "0.4", "0.6", "0.8", "1.0"})) << "no 1e-12";
  EXPECT_EQ(labels(0.0009999, 0.001),
            (Texts{"0.00090", "0.00095", "0.00100", "0.00105", "0.00110"}));
  EXPECT_EQ(labels(0, 6e-5).count("2e-5"), 1U);
  EXPECT_EQ(labels(0.97, 0.98).count("0.974"), 1U);
  EXPECT_EQ(labels(12'000, 12'100).count("12.04k"), 1U);
  EXPECT_EQ(labels(-3e6, 2e6).count("-1M"), 1U);
  for (const auto& [low, high] :
       {std::pair{5.0, 5.0}, {-7e-9, -7e-9}, {0.99, 1.01}, {999, 1001}, {0, 1e300}, {1e9, 1.01e9}})
    labels(low, high);
}

TEST(ChartAxis, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.125), "0.125");
  EXPECT_EQ(short_number(12'500), "12.5k");
  EXPECT_EQ(short_number(3e6), "3M");
  EXPECT_EQ(short_number(1e-5), "1e-05");
}

TEST(MemoryChart, ShowsExtremesAndPhases) {
  MemoryCourse course;
  course.device = "CPU";
  for (int i = 0; i <= 100'000; ++i) course.points.emplace_back(i * 1e-3, i == 50'000 ? 8e9 : 4e9);
  course.phases = {{"forward", 0, 25}, {"backward", 25, 50}, {"forward", 50, 100}};
  const std::string svg = memory_svg(course);
  const auto line = test::elements_of(svg, "polyline").at(0).points();
  EXPECT_LT(line.size(), 2300U);
  double top = 1e9, bottom = 0;
  for (const auto& [x, y] : line) {
    top = std::min(top, y);
    bottom = std::max(bottom, y);
  }
  EXPECT_NEAR((380 - top) / (380 - bottom), 2, 1e-3) << "8 GB beside 4";
  const auto areas = test::elements_of(svg, "rect");  // the page, two names, three phases
  ASSERT_EQ(areas.size(), 6U);
  EXPECT_EQ(areas[1].attributes.at("class"), areas[2].attributes.at("class"));
  EXPECT_EQ(areas[1].attributes.at("class"), areas[5].attributes.at("class"));
  EXPECT_NE(areas[1].attributes.at("class"), areas[3].attributes.at("class"));
  EXPECT_NEAR(areas[5].number("width"), 2 * areas[2].number("width"), 0.02);
  EXPECT_TRUE(test::elements_of(memory_svg({"CPU", {}, {}}), "polyline").empty());
}

}  // namespace
}  // namespace cytra::report
