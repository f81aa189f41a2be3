#include "training/lr_finder.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::training {
namespace {

constexpr double kBeta = 0.98;
constexpr std::size_t kSkipBegin = 10, kSkipEnd = 1;

struct Scale {
  double low, high, from, to;
  bool is_log = false;
  double operator()(double value) const {
    const double share =
        is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
  std::vector<double> marks() const {
    std::vector<double> marks;
    if (is_log) {
      for (double mark = std::pow(10, std::ceil(std::log10(low) - 1e-9)); mark <= high * 1.0001;
           mark *= 10)
        marks.push_back(mark);
    } else {
      for (int i = 0; i <= 4; ++i) marks.push_back(low + i * (high - low) / 4);
    }
    return marks;
  }
};

}  // namespace

void LrFinderOptions::check() const {
  if (max_lr <= min_lr)
    throw ConfigError(
        fmt::format("max_lr: expected more than min_lr ({:g}), got {:g}", min_lr, max_lr));
}

Rates LrFinder::at(double /*base_lr*/, const Position& position) const {
  if (position.step == 0) return {options_.min_lr};
  const double share =
      static_cast<double>(position.step + 1) / static_cast<double>(options_.num_training);
  if (options_.mode == "linear")
    return {options_.min_lr + share * (options_.max_lr - options_.min_lr)};
  return {options_.min_lr * std::pow(options_.max_lr / options_.min_lr, share)};
}

bool LrFinder::add(double lr, double loss) {
  if (!std::isfinite(loss)) return false;
  const std::size_t step = points_.size() + 1;
  mean_ = kBeta * mean_ + (1 - kBeta) * loss;
  const double smoothed = mean_ / (1 - std::pow(kBeta, static_cast<double>(step + 1)));
  points_.push_back({lr, loss, smoothed});
  const bool diverges = options_.early_stop_threshold && step > 1 &&
                        smoothed > *options_.early_stop_threshold * best_;
  if (smoothed < best_ || step == 1) best_ = smoothed;
  return !diverges;
}

std::optional<std::size_t> LrFinder::suggestion() const {
  if (points_.size() < kSkipBegin + kSkipEnd + 2) return std::nullopt;
  std::vector<float> losses, rates;  // as Lightning's tensors
  for (std::size_t i = kSkipBegin; i < points_.size() - kSkipEnd; ++i) {
    losses.push_back(static_cast<float>(points_[i].smoothed));
    rates.push_back(static_cast<float>(points_[i].lr));
  }
  const at::Tensor slope = at::gradient(at::tensor(losses), {at::tensor(rates)})[0];
  return kSkipBegin + static_cast<std::size_t>(slope.argmin().item<int64_t>());
}

std::string plot_svg(const LrFinder& finder, bool is_log) {
  const std::vector<LrFinder::Point>& points = finder.points();
  if (points.size() < 2) return "";
  double low = points.front().smoothed, high = low;
  for (const LrFinder::Point& point : points) {
    low = std::min(low, point.smoothed);
    high = std::max(high, point.smoothed);
  }
  const double margin = std::max(0.05 * (high - low), 1e-9);
  const Scale x{points.front().lr, points.back().lr, 70, 700, is_log};
  const Scale y{low - margin, high + margin, 360, 20};
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 420\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\" fill=\"#333\">\n<rect width=\"720\" height=\"420\" fill=\"#fff\"/>\n"
      "<clipPath id=\"area\"><rect x=\"70\" y=\"20\" width=\"630\" height=\"340\"/></clipPath>\n";
  for (const double mark : x.marks()) {
    svg += fmt::format(
        "<path d=\"M{0:.1f} 20V360\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"378\" "
        "text-anchor=\"middle\">{1:.3g}</text>\n",
        x(mark),
        mark);
  }
  for (const double mark : y.marks()) {
    svg += fmt::format(
        "<path d=\"M70 {0:.1f}H700\" stroke=\"#ddd\"/><text x=\"64\" y=\"{0:.1f}\" dy=\"4\" "
        "text-anchor=\"end\">{1:.3g}</text>\n",
        y(mark),
        mark);
  }
  std::string raw, smooth;
  for (const LrFinder::Point& point : points) {
    raw += fmt::format("{:.1f},{:.1f} ", x(point.lr), y(point.loss));
    smooth += fmt::format("{:.1f},{:.1f} ", x(point.lr), y(point.smoothed));
  }
  const char* line =
      "<polyline clip-path=\"url(#area)\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
      "points=\"{}\"/>\n";
  svg += fmt::format(fmt::runtime(line), "#bbb", 1, raw);
  svg += fmt::format(fmt::runtime(line), "#0072b2", 2, smooth);
  if (const std::optional<std::size_t> best = finder.suggestion()) {
    const LrFinder::Point& point = points[*best];
    svg += fmt::format(
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"5\" fill=\"#d55e00\"/><text x=\"{0:.1f}\" "
        "y=\"{1:.1f}\" dy=\"-10\" text-anchor=\"middle\">{2:.3g}</text>\n",
        x(point.lr),
        y(point.smoothed),
        point.lr);
  }
  return svg +
         "<text x=\"385\" y=\"405\" text-anchor=\"middle\">learning rate</text>"
         "<text x=\"16\" y=\"190\" text-anchor=\"middle\" transform=\"rotate(-90 16 190)\">loss"
         "</text>\n</svg>\n";
}

}  // namespace cytra::training
