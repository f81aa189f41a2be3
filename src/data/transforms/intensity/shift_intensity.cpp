// ShiftIntensityd, StdShiftIntensityd and their random forms. Source:
// monai.transforms.{ShiftIntensityd, RandShiftIntensityd, StdShiftIntensityd,
// RandStdShiftIntensityd}.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct ShiftIntensityd : KeyOptions {
  double offset = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("offset", offset, "what to add", config::required);
    v("safe", config::Unused{}, "float32 does not overflow here");
  }
  static constexpr bool kIsPointwise = true;
  at::Tensor operator()(const at::Tensor& image) const { return image + offset; }
};
CYTRA_REGISTER(Transform, PerKey<ShiftIntensityd>, "ShiftIntensityd");

struct RandShiftIntensityd : RandKeyOptions {
  std::vector<double> offsets;
  bool channel_wise = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("offsets", offsets, "range of what to add; one number: -number..number", config::required);
    v("channel_wise", channel_wise, "an offset for each channel");
    v("safe", config::Unused{}, "float32 does not overflow here");
  }
  void check() const { check_range("offsets", offsets, true); }

  auto draw(Rng& rng, const at::Tensor& first) const {
    const Range range(offsets, -offsets[0]);
    return [drawn = range.draw(rng, channel_wise ? first.size(0) : 1)](const at::Tensor& image) {
      return by_channel(
          image, drawn, [](const at::Tensor& part, double offset) { return part + offset; });
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandShiftIntensityd>, "RandShiftIntensityd");

/// Adds factor * deviation, where the deviation is that of all values or of those that are not 0.
at::Tensor shift_by_deviation(const at::Tensor& part, double factor, bool nonzero) {
  if (!nonzero) return part + part.std(/*unbiased=*/false) * factor;
  const at::Tensor mask = part.ne(0);
  const at::Tensor values = part.masked_select(mask);
  if (values.numel() == 0) return part;
  return at::where(mask, part + values.std(/*unbiased=*/false) * factor, part);
}

struct StdShiftIntensityd : KeyOptions {
  double factor = 0;
  bool nonzero = false, channel_wise = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("factor", factor, "deviations to add", config::required);
    v("nonzero", nonzero, "leave zeros as they are and out of the deviation");
    v("channel_wise", channel_wise, "each channel by its own deviation");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return by_channel(image, channel_wise, [this](const at::Tensor& part) {
      return shift_by_deviation(part, factor, nonzero);
    });
  }
};
CYTRA_REGISTER(Transform, PerKey<StdShiftIntensityd>, "StdShiftIntensityd");

struct RandStdShiftIntensityd : RandKeyOptions {
  std::vector<double> factors;
  bool nonzero = false, channel_wise = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("factors",
      factors,
      "range of the deviations to add; one number: -number..number",
      config::required);
    v("nonzero", nonzero, "leave zeros as they are and out of the deviation");
    v("channel_wise", channel_wise, "each channel by its own deviation, with one factor");
  }
  void check() const { check_range("factors", factors, true); }

  auto draw(Rng& rng, const at::Tensor&) const {
    return [this, factor = Range(factors, -factors[0]).draw(rng)](const at::Tensor& image) {
      return by_channel(image, channel_wise, [&](const at::Tensor& part) {
        return shift_by_deviation(part, factor, nonzero);
      });
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandStdShiftIntensityd>, "RandStdShiftIntensityd");

}  // namespace
}  // namespace cytra::data
