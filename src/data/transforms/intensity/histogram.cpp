// HistogramNormalized, RandHistogramShiftd: intensities through a curve. Source:
// monai.transforms.{HistogramNormalized, RandHistogramShiftd}.

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// Applies curve(value) to every value.
at::Tensor map_values(const at::Tensor& image, const auto& curve) {
  const at::Tensor in = image.contiguous();
  at::Tensor out = at::empty_like(in);
  const float* from = in.const_data_ptr<float>();
  std::transform(from, from + in.numel(), out.mutable_data_ptr<float>(), curve);
  return out;
}

/// A histogram like numpy.histogram of float32 values, with edges and indices in float32.
class Histogram {
 public:
  Histogram(const at::Tensor& values, int64_t bins) : counts_(static_cast<std::size_t>(bins)) {
    const at::Tensor flat = values.contiguous();
    const float* data = flat.const_data_ptr<float>();
    float first = flat.min().item<float>(), last = flat.max().item<float>();
    if (first == last) {
      first -= 0.5f;
      last += 0.5f;
    }
    const float step = (last - first) / static_cast<float>(bins);
    for (int64_t i = 0; i < bins; ++i) edges_.push_back(static_cast<float>(i) * step + first);
    edges_.push_back(last);
    const auto highest = static_cast<std::size_t>(bins - 1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const float place = (data[i] - first) / (last - first) * static_cast<float>(bins);
      auto bin = std::min(static_cast<std::size_t>(place), highest);
      // Rounding may put a value into a bin next to its own.
      if (data[i] < edges_[bin]) {
        --bin;
      } else if (bin < highest && data[i] >= edges_[bin + 1]) {
        ++bin;
      }
      ++counts_[bin];
    }
  }
  std::vector<double> centers() const {
    std::vector<double> centers;
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i)
      centers.push_back((edges_[i] + edges_[i + 1]) / 2);
    return centers;
  }
  /// The cumulated counts up to each bin, scaled to low..high.
  std::vector<double> cumulated(double low, double high) const {
    std::vector<double> sums;
    double sum = 0;
    for (const int64_t count : counts_) sums.push_back(sum += static_cast<double>(count));
    const double least = sums.front(), range = sums.back() - least;
    for (double& value : sums)
      value = range == 0 ? value * low : (value - least) / range * (high - low) + low;
    return sums;
  }

 private:
  std::vector<int64_t> counts_;
  std::vector<float> edges_;
};

/// The value at `value` of the polyline through (x, y); constant beyond the ends. x ascends.
double interpolate(const std::vector<double>& x, const std::vector<double>& y, double value) {
  if (value <= x.front()) return y.front();
  if (value >= x.back()) return y.back();
  const auto above = static_cast<std::size_t>(std::ranges::upper_bound(x, value) - x.begin());
  const double slope = (y[above] - y[above - 1]) / (x[above] - x[above - 1]);
  return y[above - 1] + slope * (value - x[above - 1]);
}

struct HistogramNormalized : KeyOptions {
  int64_t num_bins = 256;
  double min = 0, max = 255;
  std::optional<std::string> mask_key;
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("num_bins", num_bins, "bins of the histogram", 1, 1e7);
    v("min", min, "least value of the result");
    v("max", max, "greatest value of the result");
    v("mask_key", mask_key, "key of a mask of the image's shape; the histogram is taken there");
  }

  void operator()(Sample& sample) const {
    for_each(sample, [&](const at::Tensor& image) {
      at::Tensor values = image;
      if (mask_key) {
        const at::Tensor& mask = sample.at(*mask_key);
        if (mask.sizes() != image.sizes())
          throw DataError("another shape than '" + *mask_key + "', its mask");
        values = image.masked_select(mask.ne(0));
      }
      if (values.numel() == 0) throw DataError("no values for a histogram, expected some");
      const Histogram histogram(values, num_bins);
      const std::vector<double> x = histogram.centers();
      const std::vector<double> y = histogram.cumulated(min, max);
      return map_values(image,
                        [&](float value) { return static_cast<float>(interpolate(x, y, value)); });
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<HistogramNormalized>, "HistogramNormalized");

struct RandHistogramShiftd : RandKeyOptions {
  std::vector<int64_t> num_control_points{10};
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("num_control_points",
      num_control_points,
      "points of the curve; two numbers: the range from which their number is drawn",
      3,
      1e6);
  }
  void check() const {
    if (num_control_points.empty() || num_control_points.size() > 2)
      throw ConfigError("num_control_points: expected one number or two");
  }

  auto draw(Rng& rng, const at::Tensor&) const {
    const auto [low, high] = std::minmax(num_control_points.front(), num_control_points.back());
    const auto count =
        static_cast<std::size_t>(low) + rng.below(static_cast<uint64_t>(high - low + 1));
    std::vector<double> x;
    for (std::size_t i = 0; i < count; ++i)
      x.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
    std::vector<double> y = x;
    // Each is between the one before, already drawn, and the one after: the curve never falls.
    for (std::size_t i = 1; i + 1 < count; ++i) y[i] = rng.uniform(y[i - 1], y[i + 1]);
    return [x, y](const at::Tensor& image) {
      const double low = image.min().item<float>(), range = image.max().item<float>() - low;
      if (range == 0) return image;
      return map_values(image, [&](float value) {
        return static_cast<float>(interpolate(x, y, (value - low) / range) * range + low);
      });
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandHistogramShiftd>, "RandHistogramShiftd");

}  // namespace
}  // namespace cytra::data
