// Intensity and utility transforms against MONAI: tests/golden/make_intensity.py.
#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample/sample.h"
#include "tests/data/make_transform.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

/// The image under x after a transform.
at::Tensor run(const std::string& text, const at::Tensor& image, uint64_t seed = 0) {
  data::Sample sample;
  sample.tensors["x"] = image;
  Rng rng(seed);
  make_transform(text)->apply(sample, rng);
  return sample.at("x");
}

at::Tensor ramp(at::IntArrayRef sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).reshape(sizes);
}

/// A share of the largest value.
double tolerance(const std::string& transform) {
  return transform == "GaussianSharpend" ? 3e-5  // alpha: 30 times the rounding of a float32 blur
                                         : 1e-5;
}

/// Compares a file's cases; how many transforms there were.
std::size_t compare_with_monai(const std::string& topic, std::size_t least) {
  const test::Golden golden(topic);
  std::map<std::string, int> compared;
  for (const test::GoldenCase& entry : golden.cases(least)) {
    const auto name = entry.node.get<std::string>("transform");
    if (name == "many") continue;
    SCOPED_TRACE(entry.name);
    config::Node node = test::component("monai.transforms." + name, entry.options());
    node.set("keys", *entry.node.find_direct("keys"));
    data::Sample sample;
    std::set<std::string> expected;
    for (const auto& [role, key] : entry.node.at("tensors").map) {
      const auto dot = role.find(".out");
      if (dot == std::string::npos) {
        sample.tensors[role] = entry.tensor(role);
      } else {
        expected.insert(role.substr(0, dot));
      }
    }
    const auto given = sample.tensors;
    const bool random = entry.node.find_direct("seed") != nullptr;
    Rng rng(random ? static_cast<uint64_t>(entry.node.get<int64_t>("seed")) : 0);
    const auto transform = make<data::Transform>(node);
    EXPECT_EQ(transform->is_random(), random);
    transform->apply(sample, rng);
    EXPECT_EQ(sample.tensors.size(), expected.size());
    for (const std::string& key : expected) {
      const at::Tensor& result = sample.at(key);
      EXPECT_EQ(result.scalar_type(), at::kFloat);
      EXPECT_LT(test::relative_difference(result, entry.tensor(key + ".out")), tolerance(name))
          << key;
    }
    for (const auto& [key, image] : given)
      EXPECT_TRUE(image.equal(entry.tensor(key))) << "the input " << key << " was written to";
    ++compared[name];
  }
  return compared.size();
}

TEST(IntensityTransforms, EqualMonai) {
  EXPECT_EQ(compare_with_monai("intensity", 461), 40U);
  EXPECT_EQ(compare_with_monai("labels", 29), 9U);
}

TEST(SmallestMaxSized, KeepsProportions) {
  const at::Tensor image = ramp({1, 30, 45});
  const std::string text = "{_target_: SmallestMaxSize, keys: x, max_size: 10, mode: nearest}";
  EXPECT_EQ(run(text, image).sizes(), (at::IntArrayRef{1, 10, 15}));
  EXPECT_EQ(run(text, image.transpose(1, 2)).sizes(), (at::IntArrayRef{1, 15, 10}));
}

TEST(SpatialCropd, TakesBoundsOrACentre) {
  const auto message = [](const std::string& options) {
    return message_of<ConfigError>(
        [&] { make_transform("{_target_: SpatialCropd, keys: x, " + options + "}"); });
  };
  EXPECT_NE(message("roi_size: [3, 3]").find("roi_center"), std::string::npos);
  EXPECT_NE(message("roi_start: [0, 0], roi_center: [1, 1]").find("expected"), std::string::npos);
}

TEST(IntensityTransforms, PercentilesBeyondAMillionValuesEqualMonai) {
  const test::Golden golden("intensity");
  const at::Tensor image =
      ((at::arange(1000100, at::kLong) * 7919) % 1000003).to(at::kFloat).reshape({1, 100, 10001}) /
      1000;
  for (const test::GoldenCase& entry : golden.cases(461)) {
    if (entry.node.get<std::string>("transform") != "many") continue;
    config::Node node = test::component("ScaleIntensityRangePercentilesd", entry.options());
    node.set("keys", config::Node::make_string("x"));
    data::Sample sample;
    sample.tensors["x"] = image;
    Rng rng(0);
    make<data::Transform>(node)->apply(sample, rng);
    const at::Tensor head = sample.at("x")[0][0].narrow(0, 0, 64);
    EXPECT_LT(test::max_difference(head, entry.tensor("head")), 1e-5) << entry.name;
  }
}

TEST(IntensityTransforms, ClipdEqualsCytoDl) {
  // cyto_dl.image.transforms.Clipd: numpy's linear percentiles, per channel unless told otherwise.
  const at::Tensor image = at::stack({ramp({10, 10}), ramp({10, 10}) * 2 + 100});
  const at::Tensor by_channel = run("{_target_: Clipd, keys: x, low: 10, high: 85}", image);
  EXPECT_FLOAT_EQ(by_channel[0].min().item<float>(), 9.9f);
  EXPECT_FLOAT_EQ(by_channel[0].max().item<float>(), 84.15f);
  EXPECT_FLOAT_EQ(by_channel[1].min().item<float>(), 119.8f);
  const at::Tensor together =
      run("{_target_: Clipd, keys: x, low: 10, high: 85, per_channel: false}", image);
  EXPECT_FLOAT_EQ(together.min().item<float>(), 19.9f);
  const at::Tensor given =
      run("{_target_: Clipd, keys: x, low: 20, high: 150, percentile: false}", image);
  EXPECT_TRUE(given.equal(image.clamp(20, 150)));
  EXPECT_TRUE(
      run("{_target_: cyto_dl.image.transforms.Clipd, keys: [x]}", image)[0].max().item<float>() <
      99);
}

TEST(NormalizeIntensityd, IsExactFarFromZero) {
  // A float sum of these is off by more than their deviation.
  const at::Tensor image = 30000 + ramp({1, 600, 700}).remainder(2);
  const at::Tensor result = run("{_target_: NormalizeIntensityd, keys: x}", image);
  EXPECT_EQ(result.min().item<float>(), -1);
  EXPECT_EQ(result.max().item<float>(), 1);
  at::Tensor sparse = at::zeros({1, 100, 101});
  sparse[0][50].fill_(30000);
  sparse[0][51].fill_(30001);
  const at::Tensor nonzero = run("{_target_: NormalizeIntensityd, keys: x, nonzero: true}", sparse);
  EXPECT_EQ(nonzero[0][50][3].item<float>(), -1);
  EXPECT_EQ(nonzero[0][51][100].item<float>(), 1);
  EXPECT_EQ(nonzero[0][0].abs().max().item<float>(), 0);
}

TEST(IntensityTransforms, KeepNaNOutOfSorting) {
  at::Tensor image = ramp({1, 8, 8}).clone();
  image[0][3][3] = NAN;
  const at::Tensor result = run(
      "{_target_: ScaleIntensityRangePercentilesd, keys: x, lower: 1, upper: 99, b_min: 0, b_max: "
      "1}",
      image);
  EXPECT_TRUE(result.isnan().all().item<bool>());
}

// What a random transform draws, over 2,000 streams.
struct Drawn {
  double mean, deviation, low, high;
};

template <class Measure>
Drawn draws(const std::string& text, const at::Tensor& image, const Measure& measure) {
  const auto transform = make_transform(text);
  std::vector<double> values;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    data::Sample sample;
    sample.tensors["x"] = image;
    Rng rng(seed);
    transform->apply(sample, rng);
    values.push_back(measure(sample.at("x")));
  }
  const at::Tensor all = at::tensor(values, at::kDouble);
  return {all.mean().item<double>(),
          all.std().item<double>(),
          all.min().item<double>(),
          all.max().item<double>()};
}

/// Uniform in low..high: mean within 4 standard errors, deviation within 5 %, ends nearly reached.
/// `error`: of a measured value, as a part of the range.
void expect_uniform_draws(const Drawn& drawn, double low, double high, double error = 1e-4) {
  const double range = high - low, deviation = range / std::sqrt(12.0);
  EXPECT_NEAR(drawn.mean, (low + high) / 2, 4 * deviation / std::sqrt(2000.0));
  EXPECT_NEAR(drawn.deviation, deviation, 0.05 * deviation);
  EXPECT_GE(drawn.low, low - error * range);
  EXPECT_LT(drawn.low, low + 0.01 * range);
  EXPECT_LE(drawn.high, high + error * range);
  EXPECT_GT(drawn.high, high - 0.01 * range);
}

TEST(RandomIntensity, DrawsUniformlyFromTheRange) {
  const at::Tensor one = at::ones({1, 2, 2});
  const auto first = [](const at::Tensor& x) { return x.flatten()[0].item<double>(); };
  const auto last = [](const at::Tensor& x) { return x.flatten()[-1].item<double>(); };
  expect_uniform_draws(
      draws("{_target_: RandScaleIntensityd, keys: x, prob: 1, factors: 0.5}", one, first),
      0.5,
      1.5);
  expect_uniform_draws(
      draws("{_target_: RandShiftIntensityd, keys: x, prob: 1, offsets: [1, 3]}", one, first),
      2,
      4);
  const at::Tensor step = ramp({1, 2, 2});  // 0..3: mean 1.5, deviation sqrt(1.25)
  expect_uniform_draws(
      draws("{_target_: RandStdShiftIntensityd, keys: x, prob: 1, factors: 2}", step, first),
      -2 * std::sqrt(1.25),
      2 * std::sqrt(1.25));
  expect_uniform_draws(
      draws("{_target_: RandScaleIntensityFixedMeand, keys: x, prob: 1, factors: 1}", step, last),
      1.5,
      4.5);
  // 1 of 3 to the power of gamma.
  expect_uniform_draws(draws("{_target_: RandAdjustContrastd, keys: x, prob: 1, gamma: [0.5, 2]}",
                             step,
                             [](const at::Tensor& x) {
                               return std::log(x.flatten()[1].item<double>() / 3) /
                                      std::log(1.0 / 3);
                             }),
                       0.5,
                       2);
  // A single spike of 1: its height after smoothing is the product of the kernels' middle taps.
  at::Tensor spike = at::zeros({1, 1, 31});
  spike[0][0][15] = 1;
  expect_uniform_draws(
      draws("{_target_: RandGaussianSmoothd, keys: x, prob: 1, approx: sampled, sigma_x: [0, 0], "
            "sigma_y: [1, 2]}",
            spike,
            [](const at::Tensor& x) {
              return 1 / (x[0][0][15].item<double>() * std::sqrt(2 * M_PI));
            }),
      1,
      2);
}

TEST(RandomIntensity, RespectsProb) {
  const at::Tensor image = ramp({1, 4, 4}) + 1;
  const std::map<std::string, std::string> needed{
      {"RandScaleIntensityd", ", factors: [0.5, 0.6]"},
      {"RandScaleIntensityFixedMeand", ", factors: [0.5, 0.6]"},
      {"RandShiftIntensityd", ", offsets: [1, 2]"},
      {"RandStdShiftIntensityd", ", factors: [1, 2]"},
      {"RandCoarseDropoutd", ", holes: 1, spatial_size: 2, fill_value: 99"},
      {"RandCoarseShuffled", ", holes: 1, spatial_size: 4"},
      {"RandAdjustContrastd", ""},
      {"RandBiasFieldd", ""},
      {"RandGaussianNoised", ""},
      {"RandGaussianSharpend", ""},
      {"RandGaussianSmoothd", ""},
      {"RandGibbsNoised", ", alpha: [0.6, 0.9]"},
      {"RandHistogramShiftd", ""},
      {"RandKSpaceSpikeNoised", ""},
      {"RandRicianNoised", ""},
      {"RandSimulateLowResolutiond", ", zoom_range: [0.5, 0.6]"},
  };
  for (const auto& [name, options] : needed) {
    SCOPED_TRACE(name);
    const auto transform =
        make_transform("{_target_: " + name +
                       ", keys: [x, missing], allow_missing_keys: true, prob: 0.3" + options + "}");
    EXPECT_TRUE(transform->is_random());
    int changed = 0;
    for (uint64_t seed = 0; seed < 2000; ++seed) {
      at::Tensor results[2];
      for (at::Tensor& result : results) {
        data::Sample sample;
        sample.tensors["x"] = image;
        Rng rng(3, 1, seed);
        transform->apply(sample, rng);
        result = sample.at("x");
      }
      ASSERT_TRUE(results[0].equal(results[1])) << "two results of one key of the Rng";
      changed += !results[0].equal(image);
    }
    EXPECT_NEAR(changed, 600, 4 * std::sqrt(2000 * 0.3 * 0.7));
  }
}

TEST(RandomIntensity, NoiseHasItsMoments) {
  const at::Tensor zeros = at::zeros({1, 101, 99});
  const at::Tensor noise =
      run("{_target_: RandGaussianNoised, keys: x, prob: 1, mean: 3, std: 2, sample_std: false}",
          zeros);
  EXPECT_NEAR(noise.mean().item<double>(), 3, 4 * 2 / std::sqrt(9999.0));
  EXPECT_NEAR(noise.std().item<double>(), 2, 0.06);
  const at::Tensor neighbours =
      (noise.flatten().slice(0, 1) - 3) * (noise.flatten().slice(0, 0, -1) - 3);
  EXPECT_NEAR(neighbours.mean().item<double>(), 0, 4 * 4 / std::sqrt(9998.0)) << "independent";
  expect_uniform_draws(draws("{_target_: RandGaussianNoised, keys: x, prob: 1, mean: 0, std: 1}",
                             at::zeros({1, 32, 32}),  // 1,024 values tell their deviation to 2 %
                             [](const at::Tensor& x) { return x.std().item<double>(); }),
                       0,
                       1,
                       0.1);
  // Rician noise of an image of 0 is Rayleigh's: mean s sqrt(pi / 2), variance s^2 (2 - pi / 2).
  const at::Tensor rician =
      run("{_target_: RandRicianNoised, keys: x, prob: 1, std: 2, sample_std: false}", zeros);
  EXPECT_NEAR(rician.mean().item<double>(), 2 * std::sqrt(M_PI / 2), 0.06);
  EXPECT_NEAR(rician.var().item<double>(), 4 * (2 - M_PI / 2), 0.12);
  EXPECT_GE(rician.min().item<double>(), 0);
}

TEST(RandomIntensity, HistogramShiftIsMonotoneAndKeepsTheRange) {
  const at::Tensor image = ramp({1, 10, 10}) / 10 - 3;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const at::Tensor result =
        run("{_target_: RandHistogramShiftd, keys: x, prob: 1, num_control_points: [4, 20]}",
            image,
            seed)
            .flatten();
    EXPECT_NEAR(result[0].item<double>(), -3, 1e-6);
    EXPECT_NEAR(result[-1].item<double>(), 6.9, 1e-6);
    EXPECT_GE(result.diff().min().item<double>(), -1e-6);
  }
}

TEST(RandomIntensity, HolesLieAnywhereInside) {
  const at::Tensor image = at::zeros({1, 5, 6, 7});
  at::Tensor sum = at::zeros({5, 6, 7});
  std::set<int64_t> volumes;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const at::Tensor result =
        run("{_target_: RandCoarseDropoutd, keys: x, prob: 1, holes: 1, spatial_size: 1, "
            "max_spatial_size: 2, fill_value: 1}",
            image,
            seed);
    sum += result[0];
    volumes.insert(result.sum().item<int64_t>());
  }
  EXPECT_EQ(volumes, (std::set<int64_t>{1, 2, 4, 8}));
  EXPECT_GE(sum.min().item<double>(), 1) << "a voxel that no hole reached";
}

TEST(RandomIntensity, SizesOfSeveralHolesAreIndependent) {
  // MONAI draws each hole's least size from the one before: sizes only grow there.
  int shrunk = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const at::Tensor result =
        run("{_target_: RandCoarseDropoutd, keys: x, prob: 1, holes: 8, spatial_size: 1, "
            "max_spatial_size: 20, fill_value: 1}",
            at::zeros({1, 400, 1}),
            seed);
    shrunk += result.sum().item<double>() < 90;
  }
  EXPECT_GT(shrunk, 100);  // 8 sizes of mean 10.5, overlaps aside
}

TEST(RandomIntensity, KeysShareWhatMonaiShares) {
  const std::vector<std::string> shared{
      "RandScaleIntensityd, factors: 0.5",
      "RandGaussianNoised",
      "RandHistogramShiftd",
      "RandGaussianSmoothd",
      "RandCoarseDropoutd, holes: 2, spatial_size: 2, fill_value: 7",
      "RandBiasFieldd"};
  for (const std::string& text : shared) {
    data::Sample sample;
    sample.tensors["a"] = ramp({1, 6, 6});
    sample.tensors["b"] = ramp({1, 6, 6});
    Rng rng(4);
    make_transform("{keys: [a, b], prob: 1, _target_: " + text + "}")->apply(sample, rng);
    EXPECT_TRUE(sample.at("a").equal(sample.at("b"))) << text;
    EXPECT_FALSE(sample.at("a").equal(ramp({1, 6, 6}))) << text;
  }
}

at::Tensor transformed(const char* yaml, const at::Tensor& image) {
  data::Sample sample;
  sample.tensors["x"] = image;
  Rng rng(0);
  make_transform(yaml)->apply(sample, rng);
  return sample.at("x");
}

// Image.fromarray(pixels).convert("L") of Pillow 12, which rounds.
TEST(Grayscaled, IsPillowsL) {
  const at::Tensor pixels =
      at::tensor({255, 0, 0, 12, 0, 255, 0, 200, 0, 0, 255, 99}, at::kFloat).view({3, 1, 4});
  const at::Tensor expected = at::tensor({76, 150, 29, 132}, at::kFloat).view({1, 1, 4});
  const char* const yaml = "{_target_: Grayscaled, keys: x}";
  EXPECT_TRUE(transformed(yaml, pixels).allclose(expected, 0, 0.5));
  const at::Tensor alpha = at::cat({pixels, at::full({1, 1, 4}, 7.0F)});
  EXPECT_TRUE(transformed(yaml, alpha).equal(transformed(yaml, pixels)));
  EXPECT_TRUE(transformed(yaml, expected).equal(expected));
}

TEST(DarkBackgroundd, MakesNegativesAlike) {
  at::Tensor bright = at::full({1, 20, 20}, 200.0F);
  bright.narrow(1, 3, 6).fill_(40);  // objects: less than half
  const at::Tensor dark = 240 - bright;
  const char* const yaml = "{_target_: DarkBackgroundd, keys: x}";
  EXPECT_TRUE(transformed(yaml, bright).equal(dark));
  EXPECT_TRUE(transformed(yaml, dark).equal(dark));
  const at::Tensor flat = at::full({1, 4, 4}, 3.0F);
  EXPECT_TRUE(transformed(yaml, flat).equal(flat));
}

TEST(IntensityTransforms, TellWhatIsWrong) {
  const at::Tensor plane = ramp({2, 4, 5});
  const auto told = [&](const std::string& text) {
    return message_of<std::exception>([&] {
      data::Sample sample;
      sample.id = "cells.tif";
      sample.tensors["x"] = plane;
      sample.tensors["y"] = ramp({2, 3, 3});
      Rng rng(0);
      make_transform("{" + text + "}")->apply(sample, rng);
    });
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"_target_: GaussianSmoothd, keys: x, sigma: [1, 2, 3]", "expected a sigma for each"},
      {"_target_: GaussianSmoothd, keys: z, sigma: 1", "cells.tif: no image under the key 'z'"},
      {"_target_: Grayscaled, keys: x", "cells.tif: 'x': 2 channels, expected one, or red"},
      {"_target_: MedianSmoothd, keys: x, radius: -1", "radius: expected no less than 0"},
      {"_target_: MedianSmoothd, keys: x, radius: [1, 1, 1]", "cells.tif: 'x': 2 spatial axes"},
      {"_target_: NormalizeIntensityd, keys: x, subtrahend: [1, 2]", "channel_wise"},
      {"_target_: NormalizeIntensityd, keys: x, divisor: [1, 2, 3], channel_wise: true",
       "cells.tif: 'x': 2 channels, expected 3"},
      {"_target_: ScaleIntensityRangePercentilesd, keys: x, lower: 1, upper: 101", "0 to 100"},
      {"_target_: ScaleIntensityRangePercentilesd, keys: x, lower: 1, upper: 99, relative: true",
       "b_min and b_max"},
      {"_target_: ClipIntensityPercentilesd, keys: x", "expected a percentile"},
      {"_target_: RandScaleIntensityd, keys: x, factors: [1, 2, 3]", "factors: 3 numbers"},
      {"_target_: RandAdjustContrastd, keys: x, gamma: 0.4", "more than 0.5"},
      {"_target_: RandGaussianNoised, keys: [x, y], prob: 1", "they share the noise"},
      {"_target_: RandCoarseDropoutd, keys: [x, y], prob: 1, holes: 1, spatial_size: [4, 5]",
       "they share the holes"},
      {"_target_: RandCoarseDropoutd, keys: x, prob: 1, holes: 1, spatial_size: [1, 1, 1]",
       "2 spatial axes"},
      {"_target_: RandHistogramShiftd, keys: x, num_control_points: 2", "from 3 to"},
      {"_target_: HistogramNormalized, keys: x, mask_key: y", "another shape than 'y'"},
      {"_target_: CastToTyped, keys: x, dtype: int64", "expected float32"},
      {"_target_: EnsureTyped, keys: x, data_type: numpy", "expected one of tensor"},
      {"_target_: ToTensord, keys: x, device: cuda", "expected one of cpu"},
      {"_target_: Identityd, keys: z", "no image under the key 'z'"},
      {"_target_: SplitDimd, keys: x, output_postfixes: [a]", "expected 1 as output_postfixes"},
      {"_target_: SplitDimd, keys: x, list_output: true", "list_output"},
      {"_target_: SplitDimd, keys: x, keepdim: false", "is no image"},
      {"_target_: SqueezeDimd, keys: x, dim: 1", "expected 1"},
      {"_target_: ConcatItemsd, keys: [x, y], name: z", "cells.tif: 'y': 2x3x3, expected 2x4x5"},
      {"_target_: CopyItemsd, keys: x, names: y", "'y' is there"},
      {"_target_: CopyItemsd, keys: x, times: 2, names: [a]", "expected keys * times: 2"},
      {"_target_: SelectItemsd, keys: z", "no image under the key 'z'"},
      {"_target_: DeleteItemsd, keys: '(', use_re: true", "expected a regular expression"},
      {"_target_: LabelToMaskd, keys: x, select_labels: 2", "expected a channel below 2"},
      {"_target_: KeepLargestConnectedComponentd, keys: x, connectivity: 3", "connectivity 3 in 2"},
      {"_target_: KeepLargestConnectedComponentd, keys: x, is_onehot: false",
       "expected 1 of labels"},
      {"_target_: Merged, mask_key: m, image_keys: [x], base_image_key: x, output_name: z", "two"},
      {"_target_: Merged, mask_key: m, image_keys: [x, y], base_image_key: q, output_name: z",
       "'q' is the base image, expected 'x' or 'y'"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = told(text);
    EXPECT_NE(message.find(expected), std::string::npos) << text << "\n  got: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(UtilityTransforms, TypesAreTakenAndChangeNothing) {
  const at::Tensor image = ramp({1, 3, 4});
  for (const std::string text : {"CastToTyped, dtype: [numpy.float32]",
                                 "CastToTyped",
                                 "EnsureTyped, dtype: null, device: cpu, track_meta: false",
                                 "EnsureTyped, data_type: tensor, dtype: torch.float32",
                                 "ToTensord, dtype: float32, wrap_sequence: true",
                                 "Identityd"}) {
    EXPECT_TRUE(run("{keys: x, _target_: " + text + "}", image).is_same(image)) << text;
  }
}

TEST(UtilityTransforms, ItemsOfSamples) {
  data::Sample sample;
  sample.tensors = {{"raw", ramp({1, 2, 2})}, {"seg", ramp({1, 2, 2})}, {"seg_2", ramp({1, 2, 2})}};
  sample.sources = {{"raw", {"a.tif", {}}}, {"late", {"b.tif", {}}}};
  Rng rng(0);
  make_transform("{_target_: CopyItemsd, keys: [raw, late], times: 2}")->apply(sample, rng);
  EXPECT_TRUE(sample.at("raw_1").equal(sample.at("raw")));
  EXPECT_EQ(sample.sources.at("late_1").path, "b.tif");
  EXPECT_EQ(sample.tensors.count("late_0"), 0U);
  make_transform(
      "{_target_: DeleteItemsd, keys: [raw_., ^seg$, late_0, gone], use_re: [true, true, false, "
      "false]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.tensors.size(), 2U);
  EXPECT_EQ(sample.sources.size(), 3U);
  make_transform("{_target_: SelectItemsd, keys: [seg_2, late, gone], allow_missing_keys: true}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.tensors.size(), 1U);
  EXPECT_EQ(sample.sources.size(), 1U);
}

TEST(UtilityTransforms, MergedTakesTheBaseWhereTheMaskIs) {
  data::Sample sample;
  sample.tensors = {{"a", at::ones({1, 2, 2})},
                    {"b", at::ones({1, 2, 2}) * 2},
                    {"m", at::tensor({1.f, 0.f, 0.f, 1.f}).reshape({1, 2, 2})}};
  sample.columns = {{"base", "b"}};
  Rng rng(0);
  const std::string text =
      "{_target_: cyto_dl.image.transforms.merge.Merged, image_keys: [a, b], output_name: out, ";
  make_transform(text + "mask_key: m, base_image_key: base}")->apply(sample, rng);
  EXPECT_TRUE(sample.at("out").flatten().equal(at::tensor({2.f, 1.f, 1.f, 2.f})));
  make_transform(text + "mask_key: none, base_image_key: a}")->apply(sample, rng);
  EXPECT_TRUE(sample.at("out").equal(sample.at("a")));
}

TEST(UtilityTransforms, RegionsOfManyLabels) {
  // 1,000 labels of one voxel and its copy of two: the larger stays, for all labels at once.
  at::Tensor image = at::zeros({1, 2, 6000});
  for (int64_t i = 0; i < 1000; ++i) {
    image[0][0][i * 6] = i + 1;
    image[0][0].narrow(0, i * 6 + 2, 2).fill_(i + 1);
  }
  const at::Tensor result = run("{_target_: KeepLargestConnectedComponentd, keys: x}", image);
  EXPECT_EQ(result.ne(0).sum().item<int64_t>(), 2000);
  EXPECT_EQ(result[0][0][0].item<float>(), 0);
  EXPECT_EQ(result[0][0][3].item<float>(), 1);
}

}  // namespace
}  // namespace cytra
