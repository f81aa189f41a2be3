#include "report/memory_chart.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "report/line_chart.h"

namespace cytra::report {

std::string memory_svg(const MemoryCourse& course) {
  constexpr double kMostColumns = 1100;  // about one for each pixel
  constexpr int kColours = 5;            // the sixth is the line's
  ChartAxis seconds, memory;
  seconds.low = memory.low = 0;
  seconds.high = 1e-9;
  memory.high = 1;
  for (const auto& [s, bytes] : course.points) {
    seconds.include(s);
    memory.include(1.05 * static_cast<double>(bytes));
  }
  seconds.label = [](double s) { return fmt::format("{:.3g} s", s); };
  memory.label = [](double bytes) { return format_bytes(bytes); };
  memory.title = course.device + " memory";
  LineChart chart({1200, 420, 90, 40, 40, 40}, seconds, memory);
  std::vector<std::string> names;
  for (const MemoryCourse::Phase& phase : course.phases) {
    const auto known = std::ranges::find(names, phase.name);
    const auto place = static_cast<int>(known - names.begin());
    const int colour = place % kColours;
    if (known == names.end()) {
      chart.add_legend(place, colour, phase.name);
      names.push_back(phase.name);
    }
    chart.add_span(colour, phase.begin_s, phase.end_s);
  }
  LineChart::Points line;  // the lowest and highest value of each column
  for (std::size_t p = 0; p < course.points.size();) {
    const auto column = [&](std::size_t i) {
      return static_cast<int>(course.points[i].first / seconds.high * kMostColumns);
    };
    int64_t low = course.points[p].second, high = low;
    const std::size_t first = p;
    for (; p < course.points.size() && column(p) == column(first); ++p) {
      low = std::min(low, course.points[p].second);
      high = std::max(high, course.points[p].second);
    }
    line.emplace_back(course.points[first].first, static_cast<double>(low));
    line.emplace_back(course.points[first].first, static_cast<double>(high));
  }
  chart.add_line(kColours, "memory", line);
  return chart.file();
}

}  // namespace cytra::report
