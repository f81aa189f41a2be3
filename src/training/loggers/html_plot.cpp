#include "training/loggers/html_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/strings.h"

namespace cytra::training {
namespace {

constexpr std::size_t kMostPieces = 300;  // of a plot some 400 pixels wide
constexpr std::size_t kMostDots = 40;
constexpr double kWidth = 480, kHeight = 270, kLeft = 52, kRight = 14, kTop = 10, kBottom = 28;

/// A range of values and the places of its marks.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool is_log = false;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double position(double value) const {  // 0..1
    if (is_log) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
  std::vector<double> marks() const {
    std::vector<double> marks;
    if (is_log) {
      const bool is_short = high / low < 1e3;
      const double stride = std::pow(10, std::ceil(std::log10(high / low) / 8));
      for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high;
           decade *= is_short ? 10 : stride) {
        for (const double factor : {1., 2., 5.}) {
          if (factor == 1 || is_short) marks.push_back(decade * factor);
        }
      }
    } else {
      const double rough = (high - low) / 7, decade = std::pow(10, std::floor(std::log10(rough)));
      double stride = 10 * decade;
      for (const double factor : {5., 2., 1.}) {
        if (factor * decade >= rough) stride = factor * decade;
      }
      const double first = std::ceil(low / stride);
      for (int i = 0; i < 10 && (first + i) * stride <= high; ++i)
        marks.push_back((first + i) * stride);
    }
    const auto is_outside = [this](double mark) { return mark < low || mark > high; };
    marks.erase(std::remove_if(marks.begin(), marks.end(), is_outside), marks.end());
    return marks;
  }
};

std::string label(double value) {
  if (std::abs(value) < 1e-12) return "0";
  if (std::abs(value) >= 1e6 && std::abs(value) < 1e9) return fmt::format("{:g}M", value / 1e6);
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e6) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

struct Frame {
  Axis x, y;
  double left(double value) const { return kLeft + x.position(value) * (kWidth - kLeft - kRight); }
  double top(double value) const {
    return kHeight - kBottom - y.position(value) * (kHeight - kTop - kBottom);
  }
  std::string point(double at, double value) const {
    return fmt::format("{:.2f},{:.2f} ", left(at), top(value));
  }
};

Frame frame_of(const std::vector<std::pair<std::string, const Curve*>>& curves,
               double first_step,
               double last_step) {
  Frame frame;
  Axis& y = frame.y;
  std::vector<double> means;
  for (const auto& [name, curve] : curves) {
    for (const Curve::Piece& piece : curve->pieces()) {
      y.include(piece.low);
      y.include(piece.high);
      means.push_back(piece.mean());
    }
  }
  frame.x.low = first_step;
  frame.x.high = std::max(last_step, first_step + 1);
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  y.is_log = y.low > 0 && y.high / *middle >= 20;
  if (y.is_log) {
    const double margin = std::pow(y.high / y.low, 0.04);
    y.low /= margin;
    y.high *= margin;
  } else {
    const double range = y.high - y.low;
    const double margin = range > 0 ? range * 0.05 : std::max(std::abs(y.high) * 0.1, 1e-12);
    y.low -= margin;
    y.high += margin;
  }
  return frame;
}

std::string grid(const Frame& frame) {
  std::string svg = "<g class=grid>";
  for (const double mark : frame.y.marks()) {
    svg += fmt::format(R"(<path d="M{} {:.1f}H{}"/><text x={} y={:.1f} text-anchor=end>{}</text>)",
                       kLeft,
                       frame.top(mark),
                       kWidth - kRight,
                       kLeft - 6,
                       frame.top(mark) + 3.5,
                       label(mark));
  }
  for (const double mark : frame.x.marks()) {
    if (mark != std::floor(mark)) continue;
    svg += fmt::format(R"(<text x={:.1f} y={} text-anchor=middle>{}</text>)",
                       frame.left(mark),
                       kHeight - 10,
                       label(mark));
  }
  return svg + "</g>";
}

std::string draw(const Frame& frame, const std::string& name, const Curve& curve, int colour) {
  std::string line, above, dots;
  std::vector<std::string> below;
  const std::vector<Curve::Piece>& pieces = curve.pieces();
  for (const Curve::Piece& piece : pieces) {
    line += frame.point(piece.mean_x(), piece.mean());
    above += frame.point(piece.mean_x(), piece.high);
    below.push_back(frame.point(piece.mean_x(), piece.low));
    if (pieces.size() <= kMostDots) {
      dots += fmt::format(R"(<circle cx={:.1f} cy={:.1f} r=2.2 />)",
                          frame.left(piece.mean_x()),
                          frame.top(piece.mean()));
    }
  }
  std::string svg = fmt::format("<g class=c{}>", colour);
  if (pieces.front().count > 1) {
    std::reverse(below.begin(), below.end());
    svg += fmt::format(R"(<polygon points="{}{}"/>)", above, join(below, ""));
  }
  return svg + fmt::format(R"(<polyline data-name="{}" points="{}"/>{}</g>)",
                           escape_html(name),
                           trim(line),
                           dots);
}

}  // namespace

void Curve::Piece::add(const Piece& other) {
  low = count == 0 ? other.low : std::min(low, other.low);
  high = count == 0 ? other.high : std::max(high, other.high);
  x += other.x;
  y += other.y;
  count += other.count;
}

void Curve::add(double x, double y) {
  last_ = y;
  if (!std::isfinite(y)) {
    ++not_finite_;
    return;
  }
  if (pieces_.empty() || pieces_.back().count == width_) {
    if (pieces_.size() == kMostPieces) {  // halve them
      for (std::size_t i = 0; i < kMostPieces / 2; ++i) {
        Piece pair = pieces_[2 * i];
        pair.add(pieces_[2 * i + 1]);
        pieces_[i] = pair;
      }
      pieces_.resize(kMostPieces / 2);
      width_ *= 2;
    }
    pieces_.emplace_back();
  }
  pieces_.back().add({x, y, y, y, 1});
}

int colour_of(std::string_view name, int place) {
  if (starts_with(name, "train/") && ends_with(name, "_step")) return 5;  // behind the epochs' mean
  constexpr const char* kStages[] = {"train/", "val/", "test/"};
  for (int i = 0; i < 3; ++i) {
    if (starts_with(name, kStages[i])) return i;
  }
  return place % 6;
}

std::string plot_svg(const std::vector<std::pair<std::string, const Curve*>>& curves,
                     double first_step,
                     double last_step) {
  const auto has_points = [](const auto& entry) { return !entry.second->pieces().empty(); };
  if (std::none_of(curves.begin(), curves.end(), has_points)) return "";
  const Frame frame = frame_of(curves, first_step, last_step);
  // What the script needs to turn a place into values.
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {} {}" role=img data-x="{} {} {} {}" data-y="{} {} {} {}"{}>)",
      kWidth,
      kHeight,
      kLeft,
      kWidth - kRight,
      frame.x.low,
      frame.x.high,
      kHeight - kBottom,
      kTop,
      frame.y.low,
      frame.y.high,
      frame.y.is_log ? " data-log=1" : "");
  svg += grid(frame);
  int place = 0;
  for (const auto& entry : curves) {
    const int colour = colour_of(entry.first, place++);
    if (has_points(entry)) svg += draw(frame, entry.first, *entry.second, colour);
  }
  return svg + "</svg>";
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += letter;
    }
  }
  return safe;
}

}  // namespace cytra::training
