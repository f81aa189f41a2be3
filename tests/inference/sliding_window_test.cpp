#include "inference/windows.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

/// The golden script's predictor: depends on the place inside the window, so wrong blending shows.
at::Tensor ramp_predictor(const at::Tensor& x) {
  at::Tensor ramp = at::zeros(x.sizes().slice(2));
  for (int64_t d = 0; d < ramp.dim(); ++d) {
    std::vector<int64_t> shape(static_cast<std::size_t>(ramp.dim()), 1);
    shape[static_cast<std::size_t>(d)] = ramp.size(d);
    ramp = ramp + (1 + at::arange(ramp.size(d), at::kFloat) / ramp.size(d)).reshape(shape);
  }
  return at::cat({x * ramp, x + 1}, 1);
}

TEST(SlidingWindow, EqualsMonai) {
  const test::Golden golden("sliding_window");
  for (const test::GoldenCase& entry : golden.cases(22)) {
    SCOPED_TRACE(entry.name);
    const auto options = config::parse<inference::SlidingWindowOptions>(entry.options());
    const at::Tensor output =
        inference::sliding_window(entry.tensor("input"), ramp_predictor, options);
    EXPECT_LT(test::max_difference(output, entry.tensor("output")), 1e-5);
  }
}

TEST(SlidingWindow, KeepsAnImageUnderTheIdentityWhateverItsType) {
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 16};
  options.overlap = {0.75};
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kByte}) {
    const at::Tensor image = at::randint(255, {1, 1, 50, 61}).to(type);
    const at::Tensor output = inference::sliding_window(
        image, [](const at::Tensor& x) { return x; }, options);
    EXPECT_EQ(output.scalar_type(), at::kFloat);
    EXPECT_LT(test::max_difference(output, image), 1e-3) << c10::toString(type);
  }
}

TEST(SlidingWindow, RefusesOptionsThatDoNotFit) {
  const auto identity = [](const at::Tensor& x) { return x; };
  inference::SlidingWindowOptions options;
  options.overlap = {1.0};
  EXPECT_THROW(inference::sliding_window(at::zeros({1, 1, 8, 8}), identity, options), ConfigError);
  options.overlap = {0.25};
  options.roi_size = {8, 8, 8};
  EXPECT_THROW(inference::sliding_window(at::zeros({1, 1, 8, 8}), identity, options), ConfigError);
  options.roi_size = {4, 4};
  EXPECT_THROW(inference::sliding_window(
                   at::zeros({1, 1, 8, 8}),
                   [](const at::Tensor& x) {
                     return at::upsample_nearest2d(x, {8, 8});
                   },
                   options),
               DataError);
}

TEST(SlidingWindow, RefusesAConstantThatNothingUses) {
  inference::SlidingWindowOptions options;
  options.cval = 1;
  EXPECT_NO_THROW(options.check());
  for (const char* mode : {"reflect", "replicate", "circular"}) {
    options.padding_mode = mode;
    EXPECT_NE(message_of<ConfigError>([&] { options.check(); }).find(mode), std::string::npos);
  }
  options.cval = 0;
  EXPECT_NO_THROW(options.check());
}

TEST(SlidingWindow, TellsHowFarItIs) {
  inference::SlidingWindowOptions options;
  options.roi_size = {8};
  options.overlap = {0};
  options.sw_batch_size = 4;
  std::vector<std::pair<int64_t, int64_t>> told;
  inference::sliding_window(
      at::zeros({1, 1, 24, 24}),
      [](const at::Tensor& x) { return x; },
      options,
      [&](int64_t done, int64_t total) { told.emplace_back(done, total); });
  EXPECT_EQ(told, (std::vector<std::pair<int64_t, int64_t>>{{4, 9}, {8, 9}, {9, 9}}));
}

TEST(SlidingWindow, OptionsSetInCppAreChecked) {
  const auto error_of = [](void (*change)(inference::SlidingWindowOptions&)) {
    inference::SlidingWindowOptions options;
    change(options);
    return message_of<ConfigError>([&] {
      inference::sliding_window(
          at::zeros({1, 1, 8, 8}), [](const at::Tensor& x) { return x; }, options);
    });
  };
  EXPECT_EQ(error_of([](inference::SlidingWindowOptions& o) {
              o.sw_batch_size = 0;
            }).find("inference_args.sw_batch_size: expected a value from 1"),
            0U);  // it looped for ever
  EXPECT_EQ(error_of([](inference::SlidingWindowOptions& o) {
              o.mode = "nonsense";
            }).find("inference_args.mode: expected one of constant, gaussian"),
            0U);
  EXPECT_NE(error_of([](inference::SlidingWindowOptions& o) { o.sigma_scale = {0}; }), "");
}

TEST(ImportanceMap, TakesOneScaleForAllDimensions) {
  EXPECT_TRUE(inference::importance_map({8, 6}, "gaussian", {0.125})
                  .equal(inference::importance_map({8, 6}, "gaussian", {0.125, 0.125})));
  EXPECT_THROW(inference::importance_map({8, 6, 4}, "gaussian", {0.1, 0.2}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 6}, "gaussian", {0}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 6}, "triangle", {0.125}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 0}, "constant", {0.125}), ConfigError);
}

TEST(WindowStarts, FollowsThePeersRounding) {
  EXPECT_EQ(inference::window_starts(109, 100, 0.9),
            (std::vector<int64_t>{0, 9}));  // not 10: 100 * (1 - 0.9) < 10
  EXPECT_EQ(inference::window_starts(10, 10, 0.5), (std::vector<int64_t>{0}));
  EXPECT_EQ(inference::window_starts(20, 16, 0.0), (std::vector<int64_t>{0, 4}));
}

}  // namespace
}  // namespace cytra
