#include "report/findings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "base/escape.h"
#include "report/line_chart.h"
#include "report/page.h"

namespace cytra::report {
namespace {

std::string cell(const std::string& text) {
  return "<td>" + escaped_html(text) + "</td>";
}

}  // namespace

std::string confusion_html(const Findings& findings) {
  if (findings.confusion.empty()) return "";
  const auto text_of = [](double count) {  // in three digits, where it is large
    const double unit = count < 1e5 ? 1 : std::pow(10, std::floor(std::log10(count)) - 2);
    return count < 1e5 ? fmt::format("{:.0f}", count)
                       : short_number(std::round(count / unit) * unit);
  };
  std::string html = "<tr><th>true \\ predicted</th>";
  for (const std::string& name : findings.classes) html += "<th>" + escaped_html(name) + "</th>";
  html += "<th>recall</th></tr>\n";
  for (std::size_t t = 0; t < findings.confusion.size(); ++t) {
    const std::vector<double>& row = findings.confusion[t];
    double all = 0;
    for (const double count : row) all += count;
    html += "<tr><th>" + escaped_html(findings.classes.at(t)) + "</th>";
    for (const double count : row) {  // on at most 65 %, which text can be read on
      html += fmt::format(
          "<td style=\"--share:{:.0f}%\">{}</td>", all > 0 ? 65 * count / all : 0, text_of(count));
    }
    html += cell(all > 0 ? fmt::format("{:.3f}", row[t] / all) : "-") + "</tr>\n";
  }
  return "<div class=\"card wide\"><h3>Confusion matrix</h3><table class=matrix>" + html +
         "</table></div>\n";
}

std::string precision_recall_html(const Findings& findings) {
  constexpr std::size_t kMostPoints = 300, kColours = 12;
  ChartAxis x, y;
  x.low = y.low = 0;
  x.high = y.high = 1;
  x.title = "recall";
  y.title = "precision";
  LineChart chart({480, 300, 64, 20, 10, 46}, x, y);
  std::string keys;
  std::size_t drawn = 0;
  for (const auto& [name, points] : findings.precision_recall) {
    LineChart::Points some;
    for (std::size_t p = 0; p < points.size(); ++p) {
      const bool is_shown = p % (points.size() / kMostPoints + 1) == 0 || p + 1 == points.size();
      if (is_shown && std::isfinite(points[p].first)) some.push_back(points[p]);
    }
    if (some.empty() || drawn == kColours) continue;
    some.insert(some.begin(), {0, some.front().second});
    chart.add_line(static_cast<int>(drawn), name, some);
    keys += colour_key(static_cast<int>(drawn++), name);
  }
  if (drawn == 0) return "";
  return chart_card("Precision over recall", keys, "<div class=tip></div>" + chart.element());
}

std::string images_html(const Findings& findings,
                        const std::string& monitor,
                        bool is_higher_better,
                        const std::map<std::string, std::string>& places) {
  constexpr std::size_t kMostRows = 200;
  std::string metric = monitor.substr(monitor.find('/') + 1);
  const auto value_of = [&](const Findings::Image& image) {
    const auto value = image.metrics.find(metric);
    return value == image.metrics.end() ? std::nan("") : value->second;
  };
  const auto has_value = [&](const Findings::Image& image) {
    return std::isfinite(value_of(image));
  };
  if (std::ranges::none_of(findings.images, has_value)) {
    metric = "loss";
    is_higher_better = false;
    if (std::ranges::none_of(findings.images, has_value)) return "";
  }
  const auto badness = [&](const Findings::Image& image) {
    if (!has_value(image)) return -std::numeric_limits<double>::infinity();
    return is_higher_better ? -value_of(image) : value_of(image);
  };
  std::vector<Findings::Image> worst = findings.images;
  std::ranges::stable_sort(worst, std::greater(), badness);
  worst.resize(std::min(worst.size(), kMostRows));
  const bool has_numbers = !worst.front().predicted.empty();
  std::string html = "<tr><th>image, the worst first</th><th>" + escaped_html(metric) + "</th>" +
                     (has_numbers ? "<th>true</th><th>predicted</th>" : "") + "</tr>\n";
  for (const Findings::Image& image : worst) {
    const auto place = places.find(image.name);
    std::string name = escaped_html(image.name);
    if (place != places.end())
      name = fmt::format("<a href=\"#{}\">{}</a>", escaped_html(place->second), name);
    html += "<tr><th>" + name + "</th>" +
            cell(has_value(image) ? fmt::format("{:.4g}", value_of(image)) : "-") +
            (has_numbers ? cell(image.truth) + cell(image.predicted) : "") + "</tr>\n";
  }
  return "<div class=\"card tall\"><table class=numbers>" + html + "</table></div>\n";
}

}  // namespace cytra::report
