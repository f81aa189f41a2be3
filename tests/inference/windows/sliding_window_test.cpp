#include "inference/windows/sliding_window.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "inference/windows/windows.h"
#include "tests/inference/window_model.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

TEST(SlidingWindow, EqualsMonai) {
  const test::Golden golden("sliding_window");
  const auto model = test::window_model(std::vector<std::string>{"full"});
  for (const test::GoldenCase& entry : golden.cases(22)) {
    SCOPED_TRACE(entry.name);
    const auto options = config::parse<inference::SlidingWindowOptions>(entry.options());
    const at::Tensor output = inference::sliding_window(entry.tensor("input"), model, options)[0];
    EXPECT_LT(test::max_difference(output, entry.tensor("output")), 1e-5);
  }
}

/// All cases of a file by make_sliding_window.py; those of `starts` are WindowStarts'.
void expect_equal_to(const char* topic, std::size_t least) {
  const test::Golden golden(topic);
  for (const test::GoldenCase& entry : golden.cases(least)) {
    SCOPED_TRACE(entry.name);
    if (!entry.has("output_0")) continue;
    const std::vector<at::Tensor> outputs = inference::sliding_window(
        entry.tensor("input"), test::window_model(entry), test::window_options(entry));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const at::Tensor expected = entry.tensor("output_" + std::to_string(i));
      EXPECT_LT(test::relative_difference(outputs[i], expected), 2e-6) << i;
    }
  }
}

TEST(SlidingWindow, EqualsMonaiOnLinesAndImages) {
  expect_equal_to("windows_2d", 64);
}
TEST(SlidingWindow, EqualsMonaiOnVolumes) {
  expect_equal_to("windows_3d", 37);
}
TEST(SlidingWindow, EqualsMonaiForSeveralOutputsSlicesAndWeights) {
  expect_equal_to("windows_outputs", 38);
}
TEST(SlidingWindow, EqualsWhatNnunetAndCellposePlace) {
  expect_equal_to("windows_spacing", 20);
}

TEST(SlidingWindow, LeavesItsInputAlone) {  // the peer, with sw_batch_size=1, does not
  inference::SlidingWindowOptions options;
  options.roi_size = {8, 8};
  options.sw_batch_size = 1;
  const at::Tensor image = at::rand({1, 2, 20, 21}), before = image.clone();
  const at::Tensor output = inference::sliding_window(image, test::identity, options);
  EXPECT_TRUE(image.equal(before));
  EXPECT_LT(test::max_difference(output, image), 1e-6);
}

TEST(SlidingWindow, AModelMayKeepItsWindowsAndWhatItMade) {
  inference::SlidingWindowOptions options;
  options.roi_size = {8, 8};
  std::vector<at::Tensor> kept, copies;
  const at::Tensor image = at::rand({1, 1, 30, 30});
  const auto model = [&](const at::Tensor& windows) {
    kept.push_back(windows.narrow(1, 0, 1));
    copies.push_back(windows.clone());
    return kept.back();
  };
  EXPECT_LT(test::max_difference(inference::sliding_window(image, model, options), image), 1e-6);
  ASSERT_GT(kept.size(), 3U);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i].equal(copies[i])) << i;
}

TEST(SlidingWindow, TakesOutputsOfAnyLayoutAndType) {
  inference::SlidingWindowOptions options;
  options.roi_size = {5, 6, 7};
  options.overlap = {0.5};
  const at::Tensor image = at::rand({2, 3, 8, 9, 10});
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
    const at::Tensor expected = inference::sliding_window(
        image,
        [&](const at::Tensor& x) { return x.to(type).to(at::kFloat).contiguous(); },
        options);
    const at::Tensor output = inference::sliding_window(
        image,
        [&](const at::Tensor& x) {
          return x.to(type).contiguous(at::MemoryFormat::ChannelsLast3d);
        },
        options);
    EXPECT_TRUE(output.equal(expected)) << c10::toString(type);
  }
  options.channels_last = true;
  const at::Tensor output = inference::sliding_window(
      image,
      [](const at::Tensor& x) {
        EXPECT_TRUE(x.is_contiguous(at::MemoryFormat::ChannelsLast3d));
        return x;
      },
      options);
  EXPECT_LT(test::max_difference(output, image), 1e-6);
}

TEST(SlidingWindow, AllocatesNothingAfterTheFirstBatch) {
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 16};
  const auto counter = std::make_shared<test::AllocationCounter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  std::vector<int64_t> counts;
  const at::Tensor image = at::rand({1, 1, 90, 90});
  const at::Tensor output = inference::sliding_window(
      image, test::identity, options, [&](int64_t, int64_t) { counts.push_back(counter->count); });
  ASSERT_GT(counts.size(), 5U);
  EXPECT_EQ(counts.back(), counts.front());
  // The batch and the result: no padded image, no weights of the image's size.
  EXPECT_LE(counter->peak, 4 * (4 * 16 * 16 + 2 * 90 * 90) + 4096);
}

TEST(SlidingWindow, KeepsAnImageUnderTheIdentityWhateverItsType) {
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 16};
  options.overlap = {0.75};
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kByte}) {
    const at::Tensor image = at::randint(255, {1, 1, 50, 61}).to(type);
    const at::Tensor output = inference::sliding_window(image, test::identity, options);
    EXPECT_EQ(output.scalar_type(), at::kFloat);
    EXPECT_LT(test::max_difference(output, image), 1e-3) << c10::toString(type);
  }
}

TEST(SlidingWindow, TakesFewerWindowsWhereMemoryRunsOut) {
  inference::SlidingWindowOptions options;
  options.roi_size = {8};
  options.sw_batch_size = 7;
  std::vector<int64_t> passes;
  const at::Tensor image = at::rand({1, 1, 30, 20});
  const at::Tensor output = inference::sliding_window(
      image,
      [&](const at::Tensor& windows) {
        passes.push_back(windows.size(0));
        TORCH_CHECK_WITH(OutOfMemoryError, windows.size(0) <= 2, "no memory");
        return windows;
      },
      options);
  EXPECT_LT(test::max_difference(output, image), 1e-6);
  EXPECT_EQ((std::vector<int64_t>{passes.begin(), passes.begin() + 5}),
            (std::vector<int64_t>{7, 4, 2, 2, 2}));
  EXPECT_THROW(inference::sliding_window(
                   image,
                   [](const at::Tensor& windows) -> at::Tensor {
                     TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory");
                     return windows;
                   },
                   options),
               c10::OutOfMemoryError);
}

TEST(SlidingWindow, GivesTheModelTheImagesFloatingType) {
  inference::SlidingWindowOptions options;
  options.roi_size = {8, 8};
  for (const at::ScalarType type :
       {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble, at::kShort}) {
    const at::Tensor image = at::randint(9, {1, 1, 14, 15}).to(type);
    const at::Tensor output = inference::sliding_window(
        image,
        [&](const at::Tensor& windows) {
          EXPECT_EQ(windows.scalar_type(), type == at::kShort ? at::kFloat : type);
          return windows;
        },
        options);
    EXPECT_EQ(output.scalar_type(), at::kFloat);
    EXPECT_LT(test::max_difference(output, image.to(at::kFloat)), 1e-5);
  }
}

TEST(SlidingWindow, TakesImagesOfAnyTypeAndLayout) {
  inference::SlidingWindowOptions options;
  options.roi_size = {8, 8};
  for (const at::ScalarType type : {at::kUInt16, at::kShort, at::kInt, at::kDouble, at::kBool}) {
    const at::Tensor image = at::randint(2, {2, 3, 14, 15}).to(type);
    const at::Tensor output = inference::sliding_window(image, test::identity, options);
    EXPECT_LT(test::max_difference(output, image.to(at::kFloat)), 1e-6) << c10::toString(type);
  }
  const at::Tensor last = at::rand({2, 3, 14, 15}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& image : {last, last.transpose(2, 3), last.flip(3).narrow(3, 1, 9)}) {
    EXPECT_LT(
        test::max_difference(inference::sliding_window(image, test::identity, options), image),
        1e-6);
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

/// What a network on a grid of 4 sees: each 4th voxel, repeated.
at::Tensor every_fourth(const at::Tensor& windows) {
  return windows.slice(2, 0, {}, 4)
      .slice(3, 0, {}, 4)
      .repeat_interleave(4, 2)
      .repeat_interleave(4, 3);
}

TEST(SlidingWindow, BeginsAtMultiplesOfItsUnit) {
  const at::Tensor image = at::randn({1, 2, 53, 30});
  const at::Tensor expected = every_fourth(image).slice(2, 0, 53).slice(3, 0, 30);
  const inference::Network model = [](const at::Tensor& windows) {
    EXPECT_EQ(windows.size(2) % 8 + windows.size(3) % 8, 0);
    return every_fourth(windows);
  };
  inference::SlidingWindowOptions options;
  options.unit = {8, 8};
  options.padding_mode = "reflect";
  for (const std::vector<int64_t>& roi : {std::vector<int64_t>{0, 0}, {16, 24}, {8, 8}, {20, 80}}) {
    options.roi_size = roi;
    EXPECT_LT(test::max_difference(inference::sliding_window(image, model, options), expected),
              1e-5);
  }
}

TEST(SlidingWindow, FillsUpBehindTheEndToItsUnit) {
  inference::SlidingWindowOptions options;
  options.unit = {8};
  options.roi_size = {0, 0};
  options.padding_mode = "reflect";
  at::Tensor seen;
  const inference::Network model = [&seen](const at::Tensor& windows) {
    seen = windows.clone();
    return windows;
  };
  const at::Tensor image = at::arange(3 * 8, at::kFloat).view({1, 1, 3, 8});
  EXPECT_TRUE(at::equal(inference::sliding_window(image, model, options), image));
  // 0 1 2 1 0 1 2 1: numpy.pad's reflect, back and forth
  EXPECT_TRUE(
      at::equal(seen[0][0], image[0][0].index_select(0, at::tensor({0, 1, 2, 1, 0, 1, 2, 1}))));
}

TEST(SlidingWindow, TakesNullForTheImagesSize) {
  const auto roi_of = [](const char* text) {
    const config::Node node = config::parse_yaml(text, "test");
    return inference::layout_windows({30, 40}, config::parse<inference::SlidingWindowOptions>(node))
        .roi;
  };
  EXPECT_EQ(roi_of("roi_size: null"), (std::vector<int64_t>{30, 40}));
  EXPECT_EQ(roi_of("roi_size: [null, 16]"), (std::vector<int64_t>{30, 16}));
  EXPECT_EQ(roi_of("roi_size: [16, -1]"), (std::vector<int64_t>{16, 40}));
  EXPECT_EQ(roi_of("roi_size: 8"), (std::vector<int64_t>{8, 8}));
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
  EXPECT_EQ(error_of([](inference::SlidingWindowOptions& o) {
              o.sw_device = "tpu9";
            }).find("inference_args.sw_device: expected a device"),
            0U);
  EXPECT_NE(error_of([](inference::SlidingWindowOptions& o) {
              o.spatial_dim = 0;
            }).find("spatial_dim=0: slices are taken of a volume"),
            std::string::npos);
  EXPECT_NE(error_of([](inference::SlidingWindowOptions& o) {
              o.roi_size = {4, 4};
              o.roi_weight_map = at::ones({4, 5});
            }).find("roi_weight_map has the shape (4,5)"),
            std::string::npos);
}

TEST(ImportanceMap, TakesOneScaleForAllDimensions) {
  EXPECT_TRUE(inference::importance_map({8, 6}, "gaussian", {0.125})
                  .equal(inference::importance_map({8, 6}, "gaussian", {0.125, 0.125})));
  EXPECT_THROW(inference::importance_map({8, 6, 4}, "gaussian", {0.1, 0.2}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 6}, "gaussian", {0}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 6}, "triangle", {0.125}), ConfigError);
  EXPECT_THROW(inference::importance_map({8, 0}, "constant", {0.125}), ConfigError);
}

TEST(WindowStarts, AreThoseOfNnunetAndCellpose) {
  const test::Golden golden("windows_spacing");
  for (const char* spacing : {"even", "cellpose"}) {
    const config::Node& cases =
        *golden.at(std::string("starts_") + spacing).node.find_direct("starts");
    ASSERT_GT(cases.list.size(), 40U);
    for (const config::Node& entry : cases.list) {
      const auto size = entry.get<int64_t>("size"), roi = entry.get<int64_t>("roi");
      std::vector<int64_t> expected;
      for (const config::Node& start : entry.at("starts").list)
        expected.push_back(start.as<int64_t>());
      EXPECT_EQ(inference::window_starts(size, roi, entry.get<double>("overlap"), spacing),
                expected)
          << spacing << " " << size << " " << roi << " " << entry.get<double>("overlap");
    }
  }
}

TEST(WindowStarts, FollowsThePeersRounding) {
  EXPECT_EQ(inference::window_starts(109, 100, 0.9),
            (std::vector<int64_t>{0, 9}));  // not 10: 100 * (1 - 0.9) < 10
  EXPECT_EQ(inference::window_starts(10, 10, 0.5), (std::vector<int64_t>{0}));
  EXPECT_EQ(inference::window_starts(20, 16, 0.0), (std::vector<int64_t>{0, 4}));
}

TEST(WindowStarts, ThereIsAnEndToWhatIsListed) {  // 8 GB for a size that a small file states
  constexpr int64_t kStated = int64_t{1} << 40;
  for (const char* spacing : {"monai", "even", "cellpose"})
    EXPECT_THROW(inference::window_starts(kStated, 64, 0.25, spacing), DataError) << spacing;
  inference::SlidingWindowOptions options;
  options.roi_size = {1, 1};
  options.overlap = {0};
  EXPECT_EQ(inference::layout_windows({3000, 3000}, options).windows(), 9000000);
  options.roi_size = {1, 1, 1};
  EXPECT_THROW(inference::layout_windows({9000000, 9000000, 9000000}, options), DataError);
  options.roi_size = {kStated, 64};
  EXPECT_THROW(options.check(), ConfigError);
}

}  // namespace
}  // namespace cytra
