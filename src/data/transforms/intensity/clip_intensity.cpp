// ClipIntensityPercentilesd and Clipd. Source: monai.transforms.ClipIntensityPercentilesd,
// cyto_dl.image.transforms.Clipd.
#include "data/sample/per_key.h"
#include "data/transforms/intensity/percentile.h"

namespace cytra::data {
namespace {

struct ClipIntensityPercentilesd : KeyOptions {
  std::optional<double> lower, upper, sharpness_factor;
  bool channel_wise = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("lower", lower, "percentile to clip at below; null: do not", 0, 100);
    v("upper", upper, "percentile to clip at above; null: do not", 0, 100);
    v("sharpness_factor", sharpness_factor, "clip softly, with softplus of this steepness");
    v("channel_wise", channel_wise, "each channel by itself");
  }
  void check() const {
    if (!lower && !upper) throw ConfigError("lower or upper: expected a percentile");
    if (lower && upper && *upper < *lower) throw ConfigError("upper: expected no less than lower");
    if (sharpness_factor && *sharpness_factor <= 0)
      throw ConfigError("sharpness_factor: expected more than 0");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return by_channel(image, channel_wise, [this](const at::Tensor& part) {
      return clipped(
          part, percentile(part, lower.value_or(0)), percentile(part, upper.value_or(0)));
    });
  }
  RowChange by_rows(const Scan& scan) const {
    return [this, ends = percentiles(scan, channel_wise, {lower.value_or(0), upper.value_or(0)})](
               const at::Tensor& rows) {
      return by_numbered_channel(rows, channel_wise, [&](const at::Tensor& part, std::size_t i) {
        return clipped(part, ends[i][0], ends[i][1]);
      });
    };
  }

 private:
  at::Tensor clipped(const at::Tensor& part, float low, float high) const {
    at::Tensor result = part;
    if (!sharpness_factor) {
      if (lower) result = result.clamp_min(low);
      if (upper) result = result.clamp_max(high);
      return result;
    }
    const double sharp = *sharpness_factor;
    const auto softplus = [](const at::Tensor& x) { return at::logaddexp(at::zeros_like(x), x); };
    if (lower) result = result + softplus((part - low) * -sharp) / sharp;
    if (upper) result = result - softplus((part - high) * sharp) / sharp;
    return result;
  }
};
CYTRA_REGISTER(Transform, PerKey<ClipIntensityPercentilesd>, "ClipIntensityPercentilesd");

struct Clipd : KeyOptions {
  double low = 0.01, high = 99.99;
  bool percentile = true, per_channel = true;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("low", low, "percentile or intensity to clip at below");
    v("high", high, "percentile or intensity to clip at above");
    v("percentile", percentile, "low and high are percentiles");
    v("per_channel", per_channel, "each channel by itself");
  }
  void check() const {
    if (percentile && (low < 0 || low > 100 || high < 0 || high > 100))
      throw ConfigError("low and high: expected percentiles from 0 to 100");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return by_channel(image, per_channel, [this](const at::Tensor& part) {
      if (!percentile) return part.clamp(low, high);
      return part.clamp(data::percentile(part, low), data::percentile(part, high));
    });
  }
  RowChange by_rows(const Scan& scan) const {
    if (!percentile) return [this](const at::Tensor& rows) { return rows.clamp(low, high); };
    return [this, ends = percentiles(scan, per_channel, {low, high})](const at::Tensor& rows) {
      return by_numbered_channel(rows, per_channel, [&](const at::Tensor& part, std::size_t i) {
        return part.clamp(ends[i][0], ends[i][1]);
      });
    };
  }
};
CYTRA_REGISTER(Transform, PerKey<Clipd>, "Clipd");

}  // namespace
}  // namespace cytra::data
