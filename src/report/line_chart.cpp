#include "report/line_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"

namespace cytra::report {
namespace {

// The colours that the page's style (share/pages/common.css) gives the classes, on white.
constexpr const char* kColours[] = {
    "#2f6fde", "#e8762d", "#2a9d6f", "#8a5cd6", "#d1437c", "#6b7a90"};

std::string style_of_a_file() {
  std::string css =
      "text{font:12px sans-serif;fill:#333}path{stroke:#ddd}polyline{fill:none;stroke-width:1.6}"
      "polygon,.span{opacity:.2}";
  for (std::size_t i = 0; i < std::size(kColours); ++i) {
    css += fmt::format("polyline.c{0}{{stroke:{1}}}polygon.c{0},circle.c{0},rect.c{0}{{fill:{1}}}",
                       i,
                       kColours[i]);
  }
  return "<style>" + css + "</style>\n";
}

std::string text_at(double left, double top, const char* anchor, const std::string& text) {
  return fmt::format(R"(<text x="{:.2f}" y="{:.2f}" text-anchor="{}">{}</text>)",
                     left,
                     top,
                     anchor,
                     escaped_html(text));
}

}  // namespace

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e6 && size < 1e9) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4 && size < 1e6) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

std::string ChartAxis::text(double mark) const {
  if (label) return label(mark);
  if (is_log) return short_number(mark);
  const double step = stride(), largest = std::max(std::abs(low), std::abs(high));
  if (std::abs(mark) < step * 1e-6) return "0";
  double unit = 1;
  std::string ending;
  if (largest >= 1e9 || largest < 5e-4) {
    const double exponent = std::floor(std::log10(largest));
    unit = std::pow(10, exponent);
    ending = fmt::format("e{:.0f}", exponent);
  } else if (largest >= 1e4) {
    unit = largest >= 1e6 ? 1e6 : 1e3;
    ending = largest >= 1e6 ? "M" : "k";
  }
  const double digits = -std::floor(std::log10(step / unit) + 1e-9);  // that tell marks apart
  return fmt::format("{:.{}f}{}", mark / unit, std::clamp(static_cast<int>(digits), 0, 9), ending);
}

void ChartAxis::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

void ChartAxis::add_margin() {
  if (is_log) {
    const double factor = high > low ? std::exp(0.05 * (std::log(high) - std::log(low))) : 2;
    low /= factor;
    high *= factor;
  } else {
    const double largest = std::max(std::abs(low), std::abs(high));
    const bool is_flat = high - low <= 2e-4 * largest;
    const double margin = is_flat ? 0.1 * largest : (high - low) * 0.05;
    low -= margin;
    high += largest > 0 ? margin : 1;
  }
}

double ChartAxis::room() const {
  constexpr double kDigit = 8.5;  // pixels, on phones
  std::size_t longest = 3;
  for (const double mark : marks()) longest = std::max(longest, text(mark).size());
  return 12 + kDigit * static_cast<double>(longest);
}

double ChartAxis::stride() const {
  const double rough = (high - low) / 7, decade = std::pow(10, std::floor(std::log10(rough)));
  double stride = 10 * decade;
  for (const double factor : {5., 2., 1.}) {
    if (factor * decade >= rough) stride = factor * decade;
  }
  return stride;
}

double ChartAxis::share(double value) const {
  if (value <= low || value >= high) return value <= low ? 0 : 1;
  if (!is_log) return (value - low) / (high - low);
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

std::vector<double> ChartAxis::marks() const {
  std::vector<double> marks;
  if (is_log) {
    const bool is_short = high / low < 1e3;
    const double stride = std::pow(10, std::ceil((std::log10(high) - std::log10(low)) / 8));
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high;
         decade *= is_short ? 10 : stride) {
      for (const double factor : {1., 2., 5.}) {
        if (factor == 1 || is_short) marks.push_back(decade * factor);
      }
    }
  } else {
    const double step = stride(), first = std::ceil(low / step);
    for (int i = 0; i < 10 && (first + i) * step <= high; ++i) marks.push_back((first + i) * step);
  }
  // Powers of ten that are made by multiplication may miss an end of the range by rounding.
  const auto is_outside = [this](double mark) {
    return mark < low - 1e-9 * std::abs(low) || mark > high + 1e-9 * std::abs(high);
  };
  std::erase_if(marks, is_outside);
  return marks;
}

LineChart::LineChart(ChartSize size, ChartAxis x, ChartAxis y)
    : size_(size), x_(std::move(x)), y_(std::move(y)) {
  body_ = R"(<g class="grid">)";
  for (const double mark : y_.marks()) {
    const std::string label = y_.text(mark);
    if (label.empty()) continue;
    body_ += fmt::format(
        R"(<path d="M{:g} {:.2f}H{:g}"/>)", size_.left, top(mark), size_.width - size_.right);
    body_ += text_at(size_.left - 6, top(mark) + 3.5, "end", label);
  }
  const double below = size_.height - size_.bottom;
  for (const double mark : x_.marks()) {
    if (const std::string label = x_.text(mark); !label.empty())
      body_ += text_at(left(mark), below + 18, "middle", label);
  }
  if (!x_.title.empty())
    body_ += text_at((size_.left + size_.width - size_.right) / 2, below + 38, "middle", x_.title);
  if (!y_.title.empty()) {
    const double middle = (size_.top + below) / 2;
    body_ += fmt::format(R"svg(<g transform="rotate(-90 14 {0:g}) translate(14 {0:g})">{1}</g>)svg",
                         middle,
                         text_at(0, 0, "middle", y_.title));
  }
  body_ += "</g>\n";
}

double LineChart::left(double x) const {
  return size_.left + x_.share(x) * (size_.width - size_.left - size_.right);
}

double LineChart::top(double y) const {
  return size_.height - size_.bottom - y_.share(y) * (size_.height - size_.top - size_.bottom);
}

std::string LineChart::places(const Points& points) const {
  std::string text;
  for (const auto& [x, y] : points) text += fmt::format("{:.2f},{:.2f} ", left(x), top(y));
  return trim(text);
}

void LineChart::add_line(int colour, const std::string& name, const Points& points) {
  if (points.empty()) return;
  body_ += fmt::format("<polyline class=\"c{}\" data-name=\"{}\" points=\"{}\"/>\n",
                       colour,
                       escaped_html(name),
                       places(points));
}

void LineChart::add_band(int colour, const Points& low, const Points& high) {
  if (low.empty()) return;
  body_ += fmt::format("<polygon class=\"c{}\" points=\"{} {}\"/>\n",
                       colour,
                       places(high),
                       places({low.rbegin(), low.rend()}));
}

void LineChart::add_dot(int colour, double x, double y, const std::string& text) {
  body_ += fmt::format(R"(<circle class="c{}" cx="{:.2f}" cy="{:.2f}" r="{}"/>)",
                       colour,
                       left(x),
                       top(y),
                       text.empty() ? "2.2" : "5");
  if (!text.empty()) body_ += text_at(left(x), top(y) - 10, "middle", text);
}

void LineChart::add_span(int colour, double begin, double end) {
  body_ += fmt::format(
      "<rect class=\"c{} span\" x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" height=\"{:g}\"/>\n",
      colour,
      left(begin),
      size_.top,
      std::max(0.3, left(end) - left(begin)),
      size_.height - size_.top - size_.bottom);
}

void LineChart::add_legend(int place, int colour, const std::string& name) {
  const double x = size_.left + 120 * place, y = size_.top - 14;
  body_ += fmt::format(
      R"(<rect class="c{} span" x="{:g}" y="{:g}" width="14" height="14"/>)", colour, x, y - 12);
  body_ += text_at(x + 20, y, "start", name) + "\n";
}

std::string LineChart::begin(const std::string& attributes) const {
  return fmt::format("<svg viewBox=\"0 0 {:g} {:g}\" {}>\n", size_.width, size_.height, attributes);
}

std::string LineChart::element() const {
  // The attributes by which the page's script turns a place into values.
  return begin(fmt::format(R"(role="img" data-x="{} {} {} {}" data-y="{} {} {} {}"{}{})",
                           size_.left,
                           size_.width - size_.right,
                           x_.low,
                           x_.high,
                           size_.height - size_.bottom,
                           size_.top,
                           y_.low,
                           y_.high,
                           y_.is_log ? " data-log=\"1\"" : "",
                           x_.title.empty() ? "" : " data-of=\"" + escaped_html(x_.title) + "\"")) +
         body_ + "</svg>";
}

std::string LineChart::file() const {
  return begin("xmlns=\"http://www.w3.org/2000/svg\"") + style_of_a_file() +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

}  // namespace cytra::report
