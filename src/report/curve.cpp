#include "report/curve.h"

#include <algorithm>
#include <cmath>

#include "report/line_chart.h"

namespace cytra::report {
namespace {

constexpr std::size_t kMostPieces = 300;  // of a plot some 400 pixels wide
constexpr std::size_t kMostDots = 40;
/// The highest value is far above most of them.
bool has_far_peak(const ChartAxis& axis, std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return axis.low > 0 && axis.high / *middle >= 20;
}

void draw(LineChart& chart, int colour, const std::string& name, const Curve& curve) {
  LineChart::Points mean, low, high;
  for (const Curve::Piece& piece : curve.pieces()) {
    mean.emplace_back(piece.mean_x(), piece.mean());
    low.emplace_back(piece.mean_x(), piece.low);
    high.emplace_back(piece.mean_x(), piece.high);
  }
  if (curve.pieces().front().count > 1) chart.add_band(colour, low, high);
  chart.add_line(colour, name, mean);
  if (mean.size() > kMostDots) return;
  for (const auto& [x, y] : mean) chart.add_dot(colour, x, y);
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

std::vector<int> colours_of(const std::vector<std::pair<std::string, const Curve*>>& curves) {
  constexpr const char* kStages[] = {"train/", "val/", "test/"};
  constexpr int kColours = 12;
  std::vector<int> by_stage, by_place;
  for (const auto& [name, curve] : curves) {
    by_place.push_back(static_cast<int>(by_place.size()) % kColours);
    int stage = name.starts_with(kStages[0]) && name.ends_with("_step") ? 5 : -1;  // behind means
    for (int i = 0; i < 3 && stage < 0; ++i)
      if (name.starts_with(kStages[i])) stage = i;
    if (stage < 0 || std::ranges::count(by_stage, stage) > 0) stage = -1;
    by_stage.push_back(stage);
  }
  return std::ranges::count(by_stage, -1) == 0 ? by_stage : by_place;
}

std::string plot_svg(const std::vector<std::pair<std::string, const Curve*>>& curves,
                     double first_step,
                     double last_step) {
  const auto has_points = [](const auto& entry) { return !entry.second->pieces().empty(); };
  if (std::ranges::none_of(curves, has_points)) return "";
  ChartAxis x, y;
  x.low = first_step;
  x.high = std::max(last_step, first_step + 1);
  x.label = [](double step) { return step == std::floor(step) ? short_number(step) : ""; };
  std::vector<double> means;
  for (const auto& [name, curve] : curves) {
    for (const Curve::Piece& piece : curve->pieces()) {
      y.include(piece.low);
      y.include(piece.high);
      means.push_back(piece.mean());
    }
  }
  y.is_log = has_far_peak(y, means);
  y.add_margin();
  ChartSize size;
  size.left = y.room();
  LineChart chart(size, x, y);
  const std::vector<int> colours = colours_of(curves);
  for (std::size_t i = 0; i < curves.size(); ++i)
    if (has_points(curves[i])) draw(chart, colours[i], curves[i].first, *curves[i].second);
  return chart.element();
}

}  // namespace cytra::report
