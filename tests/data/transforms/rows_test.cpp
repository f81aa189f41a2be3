// Transforms of images that are read by rows do what they do to whole ones.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "device/device.h"
#include "tests/data/make_transform.h"

namespace cytra::data {
namespace {

at::Tensor changed_by_rows(const Transform& transform, const at::Tensor& image, int64_t step) {
  const Scan scan = [&](const Rows& look) {
    for (int64_t first = 0; first < image.size(1); first += step)
      look(image.narrow(1, first, std::min(step, image.size(1) - first)));
  };
  const RowChange change = transform.by_rows("raw", scan);
  if (!change) return {};
  std::vector<at::Tensor> parts;
  scan([&](const at::Tensor& rows) { parts.push_back(change(rows)); });
  return at::cat(parts, 1);
}

TEST(Rows, GiveWhatTheWholeImageGives) {
  at::manual_seed(1);
  const at::Tensor noise = at::randn({2, 13, 9, 11}) * 40 + 7,
                   whole = (at::rand({1, 37, 29}) * 300).floor().clamp_min(90),
                   constant = at::full({1, 5, 6}, 3.0F), large = at::rand({1, 1200, 900});
  for (const char* yaml :
       {"{_target_: NormalizeIntensityd, keys: raw}",
        "{_target_: NormalizeIntensityd, keys: raw, channel_wise: true}",
        "{_target_: NormalizeIntensityd, keys: raw, nonzero: true, subtrahend: 3}",
        "{_target_: NormalizeIntensityd, keys: raw, subtrahend: 3, divisor: 2}",
        "{_target_: ScaleIntensityd, keys: raw}",
        "{_target_: ScaleIntensityd, keys: raw, minv: -1, maxv: 2, channel_wise: true}",
        "{_target_: ScaleIntensityd, keys: raw, minv: null, maxv: null, factor: 0.5}",
        "{_target_: ScaleIntensityRanged, keys: raw, a_min: 0, a_max: 9, b_min: 0, b_max: 1}",
        "{_target_: ScaleIntensityRangePercentilesd, keys: raw, lower: 1, upper: 99.5, b_min: 0, "
        "b_max: 1, clip: true}",
        "{_target_: ScaleIntensityRangePercentilesd, keys: raw, lower: 0, upper: 100, b_min: 0, "
        "b_max: 1, relative: true, channel_wise: true}",
        "{_target_: ClipIntensityPercentilesd, keys: raw, lower: 3.3, upper: 97}",
        "{_target_: ClipIntensityPercentilesd, keys: raw, upper: 97, sharpness_factor: 2}",
        "{_target_: Clipd, keys: raw, low: 5, high: 95}",
        "{_target_: Clipd, keys: raw, percentile: false, low: 0, high: 5}",
        "{_target_: ThresholdIntensityd, keys: raw, threshold: 4}",
        "{_target_: ShiftIntensityd, keys: raw, offset: 4}",
        "{_target_: DarkBackgroundd, keys: raw}",
        "{_target_: EnsureTyped, keys: raw}",
        "{_target_: EnsureChannelFirstd, keys: raw}",
        "{_target_: ScaleIntensityd, keys: other}"}) {
    const auto transform = make_transform(yaml);
    for (const at::Tensor& image : {noise, whole, constant, large}) {
      Sample sample;
      sample.tensors["raw"] = image.clone();
      sample.tensors["other"] = image.clone();
      Rng rng(0);
      transform->apply(sample, rng);
      for (const int64_t step : {1, 4, 1200}) {
        if (step == 1 && image.is_same(large)) continue;
        const at::Tensor rows = changed_by_rows(*transform, image, step);
        ASSERT_TRUE(rows.defined()) << yaml;
        const at::Tensor& expected = sample.at("raw");
        // exp() and log() of the last values of an array are not those of eight at once.
        const bool is_soft = std::string(yaml).find("sharpness") != std::string::npos;
        EXPECT_TRUE(is_soft ? rows.allclose(expected, 1e-5, 1e-6) : rows.equal(expected))
            << yaml << " " << image.sizes() << " " << step;
      }
    }
  }
}

// A plane of 30,000 x 30,000 bytes took 8.9 GB: twice its 3.6 GB as float32, and what it was.
TEST(Rows, ALargeImageIsFloatOnce) {
  const at::Tensor image =
      at::arange(8500 * 8000).remainder(250).to(at::kByte).view({1, 8500, 8000});
  const double float_bytes = 4.0 * 8500 * 8000;
  for (const char* yaml :
       {"{_target_: NormalizeIntensityd, keys: raw, channel_wise: true}",
        "{_target_: ScaleIntensityRanged, keys: raw, a_min: 0, a_max: 9, b_min: 0, b_max: 1}"}) {
    Sample sample, whole;
    sample.tensors["raw"] = image;
    Rng rng(0);
    const auto transform = make_transform(yaml);
    device::reset_peak_memory(c10::kCPU);
    const auto before = static_cast<double>(device::used_memory(c10::kCPU));
    transform->apply(sample, rng);
    EXPECT_LT(static_cast<double>(device::peak_memory(c10::kCPU)) - before, 1.4 * float_bytes)
        << yaml;
    whole.tensors["raw"] = image.to(at::kFloat);
    transform->apply(whole, rng);
    EXPECT_TRUE(sample.at("raw").equal(whole.at("raw"))) << yaml;
  }
}

TEST(Rows, AreRefusedByWhatTakesTheWholeImage) {
  const Scan scan = [](const Rows&) { FAIL() << "nothing to look for"; };
  for (const char* yaml : {"{_target_: Spacingd, keys: raw, pixdim: [1, 1]}",
                           "{_target_: SpatialPadd, keys: raw, spatial_size: [64, 64]}",
                           "{_target_: GaussianSmoothd, keys: raw, sigma: 1}",
                           "{_target_: HistogramNormalized, keys: raw}"})
    EXPECT_FALSE(make_transform(yaml)->by_rows("raw", scan)) << yaml;
}

}  // namespace
}  // namespace cytra::data
