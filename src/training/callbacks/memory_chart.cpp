#include "training/callbacks/memory_chart.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"

namespace cytra::training {

std::string memory_svg(const MemoryCourse& course) {
  constexpr double kWidth = 1200, kHeight = 420, kLeft = 80, kRight = 40, kTop = 40, kBottom = 40;
  constexpr std::size_t kMostColumns = 1100;  // one for each pixel
  const char* const colours[] = {
      "#2f6fde", "#e8762d", "#2a9d6f", "#8a5cd6", "#d1437c", "#6b7a90", "#b8860b"};
  double last_s = 1e-9, top = 1;
  for (const auto& [s, bytes] : course.points) {
    last_s = std::max(last_s, s);
    top = std::max(top, 1.05 * static_cast<double>(bytes));
  }
  const auto x = [&](double s) { return kLeft + s / last_s * (kWidth - kLeft - kRight); };
  const auto y = [&](double bytes) {
    return kHeight - kBottom - bytes / top * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth,
      kHeight);
  std::vector<std::string> names;
  for (const MemoryCourse::Phase& phase : course.phases) {
    const auto known = std::find(names.begin(), names.end(), phase.name);
    const auto place = static_cast<std::size_t>(known - names.begin());
    const char* const colour = colours[place % std::size(colours)];
    if (known == names.end()) {
      svg += fmt::format(
          "<rect x=\"{0}\" y=\"12\" width=\"14\" height=\"14\" fill=\"{1}\" opacity=\".4\"/>"
          "<text x=\"{2}\" y=\"24\">{3}</text>\n",
          kLeft + 120 * static_cast<double>(place),
          colour,
          kLeft + 120 * static_cast<double>(place) + 20,
          phase.name);
      names.push_back(phase.name);
    }
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" opacity=\".2\"/>\n",
        x(phase.begin_s),
        kTop,
        std::max(0.3, x(phase.end_s) - x(phase.begin_s)),
        kHeight - kTop - kBottom,
        colour);
  }
  for (int mark = 0; mark <= 4; ++mark) {
    const double bytes = top / 1.05 * mark / 4, s = last_s * mark / 4;
    svg += fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#ccc\"/><text x=\"{3}\" y=\"{1:.1f}\" "
        "text-anchor=\"end\">{4}</text><text x=\"{5:.1f}\" y=\"{6}\" "
        "text-anchor=\"middle\">{7:.3g} s</text>\n",
        kLeft,
        y(bytes),
        kWidth - kRight,
        kLeft - 6,
        format_bytes(bytes),
        x(s),
        kHeight - kBottom + 20,
        s);
  }
  // The lowest and highest value of each column.
  svg += "<polyline fill=\"none\" stroke=\"#1c2330\" points=\"";
  for (std::size_t p = 0; p < course.points.size();) {
    const auto column = [&](std::size_t i) {
      return static_cast<std::size_t>(course.points[i].first / last_s * kMostColumns);
    };
    int64_t low = course.points[p].second, high = low;
    const std::size_t first = p, here = column(p);
    for (; p < course.points.size() && column(p) == here; ++p) {
      low = std::min(low, course.points[p].second);
      high = std::max(high, course.points[p].second);
    }
    const double at = x(course.points[first].first);
    svg += fmt::format("{0:.2f},{1:.2f} {0:.2f},{2:.2f} ",
                       at,
                       y(static_cast<double>(low)),
                       y(static_cast<double>(high)));
  }
  svg += fmt::format("\"/>\n<text x=\"{}\" y=\"24\" text-anchor=\"end\">{} memory</text>\n</svg>\n",
                     kWidth - kRight,
                     course.device);
  return svg;
}

}  // namespace cytra::training
