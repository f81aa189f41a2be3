// ScaleIntensityd, RandScaleIntensityd, RandScaleIntensityFixedMeand. Source:
// monai.transforms.{ScaleIntensityd, RandScaleIntensityd, RandScaleIntensityFixedMeand}.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct ScaleIntensityd : KeyOptions {
  std::optional<double> minv = 0.0, maxv = 1.0, factor;
  bool channel_wise = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("minv", minv, "becomes the least value; null, like maxv: 0 to 1");
    v("maxv", maxv, "becomes the greatest value");
    v("factor", factor, "x * (1 + factor) instead, when minv and maxv are null");
    v("channel_wise", channel_wise, "each channel by itself");
  }

  at::Tensor operator()(const at::Tensor& image) const {
    return by_rows([&](const Rows& look) { look(image); })(image);
  }
  RowChange by_rows(const Scan& scan) const {
    if (!minv && !maxv) {
      return [this](const at::Tensor& rows) { return factor ? rows * (1 + *factor) : rows; };
    }
    std::vector<at::Tensor> lows, highs;  // of each channel, or of the image
    scan([&](const at::Tensor& rows) {
      by_numbered_channel(rows, channel_wise, [&](const at::Tensor& part, std::size_t i) {
        const at::Tensor low = part.min(), high = part.max();
        if (lows.size() == i) {
          lows.push_back(low);
          highs.push_back(high);
        }
        lows[i] = at::minimum(lows[i], low);
        highs[i] = at::maximum(highs[i], high);
        return low;
      });
    });
    return [this, lows = std::move(lows), highs = std::move(highs)](const at::Tensor& rows) {
      return by_numbered_channel(rows, channel_wise, [&](const at::Tensor& part, std::size_t i) {
        if (lows[i].equal(highs[i])) return minv ? part * *minv : part;
        const at::Tensor unit = (part - lows[i]) / (highs[i] - lows[i]);
        return minv && maxv ? unit * (*maxv - *minv) + *minv : unit;
      });
    };
  }
};
CYTRA_REGISTER(Transform, PerKey<ScaleIntensityd>, "ScaleIntensityd");

struct RandScaleIntensityd : RandKeyOptions {
  std::vector<double> factors;
  bool channel_wise = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("factors",
      factors,
      "range of f in x * (1 + f); one number: -number..number",
      config::required);
    v("channel_wise", channel_wise, "a factor for each channel");
  }
  void check() const { check_range("factors", factors, true); }

  auto draw(Rng& rng, const at::Tensor& first) const {
    const Range range(factors, -factors[0]);
    return [drawn = range.draw(rng, channel_wise ? first.size(0) : 1)](const at::Tensor& image) {
      return by_channel(
          image, drawn, [](const at::Tensor& part, double factor) { return part * (1 + factor); });
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandScaleIntensityd>, "RandScaleIntensityd");

struct RandScaleIntensityFixedMeand : RandKeyOptions {
  std::vector<double> factors;
  bool fixed_mean = true, preserve_range = false, channel_wise = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("factors",
      factors,
      "range of f in (x - mean) * (1 + f) + mean; one number: -number..number",
      config::required);
    v("fixed_mean", fixed_mean, "subtract the mean before, add it after");
    v("preserve_range", preserve_range, "clip to the smallest and the largest value before");
    v("channel_wise", channel_wise, "a factor for each channel");
  }
  void check() const { check_range("factors", factors, true); }

  auto draw(Rng& rng, const at::Tensor& first) const {
    const Range range(factors, -factors[0]);
    const auto scale = [this](const at::Tensor& part, double factor) {
      const at::Tensor mean = fixed_mean ? part.mean() : at::zeros({}, part.options());
      const at::Tensor scaled = (part - mean) * (1 + factor) + mean;
      return preserve_range ? scaled.clamp(part.min(), part.max()) : scaled;
    };
    return [scale, drawn = range.draw(rng, channel_wise ? first.size(0) : 1)](
               const at::Tensor& image) { return by_channel(image, drawn, scale); };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandScaleIntensityFixedMeand>, "RandScaleIntensityFixedMeand");

}  // namespace
}  // namespace cytra::data
