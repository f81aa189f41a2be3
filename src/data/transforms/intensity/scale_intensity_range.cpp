// ScaleIntensityRanged, ScaleIntensityRangePercentilesd: [a_min, a_max] to [b_min, b_max]. Source:
// monai.transforms.{ScaleIntensityRanged, ScaleIntensityRangePercentilesd}.
#include "data/sample/per_key.h"
#include "data/transforms/intensity/percentile.h"

namespace cytra::data {
namespace {

struct OutputRange {
  std::optional<double> low, high;
  bool clip = false;
};

at::Tensor scale(const at::Tensor& image, double a_min, double a_max, const OutputRange& output) {
  // A constant image: MONAI neither scales nor clips it.
  if (a_max - a_min == 0) return image - a_min + output.low.value_or(0);
  at::Tensor scaled = (image - a_min) / (a_max - a_min);
  if (output.low && output.high) scaled = scaled * (*output.high - *output.low) + *output.low;
  if (!output.clip || (!output.low && !output.high)) return scaled;
  using Bound = std::optional<at::Scalar>;
  return scaled.clamp(output.low ? Bound(*output.low) : Bound(),
                      output.high ? Bound(*output.high) : Bound());
}

struct RangeOptions : KeyOptions {
  std::optional<double> b_min, b_max;
  bool clip = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("b_min", b_min, "low end of the result; null: 0, and nothing is clipped there");
    v("b_max", b_max, "high end of the result; null: 1, and nothing is clipped there");
    v("clip", clip, "clip to b_min..b_max");
  }
};

struct ScaleIntensityRanged : RangeOptions {
  double a_min = 0, a_max = 0;
  void visit(auto& v) {
    RangeOptions::visit(v);
    v("a_min", a_min, "intensity that becomes b_min", config::required);
    v("a_max", a_max, "intensity that becomes b_max", config::required);
  }
  static constexpr bool kIsPointwise = true;
  at::Tensor operator()(const at::Tensor& image) const {
    return scale(image, a_min, a_max, {b_min, b_max, clip});
  }
};
CYTRA_REGISTER(Transform, PerKey<ScaleIntensityRanged>, "ScaleIntensityRanged");

struct ScaleIntensityRangePercentilesd : RangeOptions {
  double lower = 0, upper = 0;
  bool relative = false, channel_wise = false;
  void visit(auto& v) {
    RangeOptions::visit(v);
    v("lower", lower, "percentile that becomes b_min", config::required);
    v("upper", upper, "percentile that becomes b_max", config::required);
    v("relative", relative, "to those percentiles of b_min..b_max instead of its ends");
    v("channel_wise", channel_wise, "each channel by itself");
  }
  void check() const {
    if (lower < 0 || lower > 100 || upper < 0 || upper > 100)
      throw ConfigError("lower and upper: expected percentiles from 0 to 100");
    if (relative && (!b_min || !b_max))
      throw ConfigError("relative=true needs both b_min and b_max");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return by_channel(image, channel_wise, [&](const at::Tensor& part) {
      return scale(part, percentile(part, lower), percentile(part, upper), output_range());
    });
  }
  RowChange by_rows(const Scan& scan) const {
    return [this,
            ranges = percentiles(scan, channel_wise, {lower, upper})](const at::Tensor& rows) {
      return by_numbered_channel(rows, channel_wise, [&](const at::Tensor& part, std::size_t i) {
        return scale(part, ranges[i][0], ranges[i][1], output_range());
      });
    };
  }

 private:
  OutputRange output_range() const {
    if (!relative) return {b_min, b_max, clip};
    const double range = *b_max - *b_min;
    return {range * (lower / 100) + *b_min, range * (upper / 100) + *b_min, clip};
  }
};
CYTRA_REGISTER(Transform,
               PerKey<ScaleIntensityRangePercentilesd>,
               "ScaleIntensityRangePercentilesd");

}  // namespace
}  // namespace cytra::data
