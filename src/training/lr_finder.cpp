#include "training/lr_finder.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "report/line_chart.h"

namespace cytra::training {
namespace {

constexpr double kBeta = 0.98;
constexpr std::size_t kSkipBegin = 10, kSkipEnd = 1;

}  // namespace

void LrFinderOptions::check() const {
  if (max_lr <= min_lr)
    throw ConfigError("max_lr: expected more than min_lr ({:g}), got {:g}", min_lr, max_lr);
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
  report::ChartAxis x, y;
  x.low = points.front().lr;
  x.high = points.back().lr;
  x.is_log = is_log;
  x.title = "learning rate";
  y.title = "loss";
  report::LineChart::Points losses, smoothed;
  for (const LrFinder::Point& point : points) {
    y.include(point.smoothed);  // single losses may lie far outside
    losses.emplace_back(point.lr, point.loss);
    smoothed.emplace_back(point.lr, point.smoothed);
  }
  y.add_margin();
  report::LineChart chart({720, 420, 70, 20, 20, 60}, x, y);
  chart.add_line(5, "loss", losses);
  chart.add_line(0, "smoothed", smoothed);
  if (const std::optional<std::size_t> best = finder.suggestion()) {
    const LrFinder::Point& point = points[*best];
    chart.add_dot(1, point.lr, point.smoothed, fmt::format("{:.3g}", point.lr));
  }
  return chart.file();
}

}  // namespace cytra::training
