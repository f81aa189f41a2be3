#include "pipelines/video/early_exit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/windows/sums.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/video/video.h"
#include "tests/pipelines/video_fixture.h"
#include "tests/support/message_of.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kExitSide = 256;

std::vector<unsigned char> corner_square(int64_t number) {
  return square_picture(kExitSide, kExitSide, 20 + number, 20, 30);
}

struct ExitResult {
  VideoFigures figures;
  std::vector<io::VideoFrame> frames;
  int64_t seen = 0;  // windows that the model was given
};

ExitResult run_exit(const VideoOptions& asked,
                    const DrawnVideo::Draw& draw,
                    int64_t frames,
                    double strength = 1) {
  std::vector<int64_t> pts;
  for (int64_t i = 0; i < frames; ++i) pts.push_back(40 * i);
  DrawnVideo video(kExitSide, kExitSide, pts, draw);
  KeptVideo kept;
  StageReport report("test");
  VideoOptions options = asked;
  options.output_kind = "mask";
  ExitResult result;
  const auto counted = [&](at::Tensor& logits) {
    result.seen += logits.size(0);
    logits.mul_(strength);
  };
  const inference::Predictor predictor = bright_predictor(1, counted);
  result.seen = 0;  // but for what measures its memory
  result.figures = run_video(video, kept, predictor, options, report);
  result.frames = std::move(kept.frames);
  return result;
}

/// Windows of 32 with an overlap of 1/4 along one side.
constexpr int64_t windows_of(int64_t side) {
  const int64_t along = (side - 32 + 23) / 24 + 1;
  return along * along;
}

TEST(EarlyExit, OnlyUnsureWindowsArePredictedAgain) {
  for (const std::vector<double>& scales : {std::vector<double>{0.5}, {0.25, 0.5}}) {
    for (const int64_t batch : {1, 2}) {
      VideoOptions options;
      options.min_confidence = 0.9;
      options.scales = scales;
      options.batch_size = batch;
      options.measure_drift = 100;  // the first frame
      const ExitResult result = run_exit(options, corner_square, 2);
      ASSERT_EQ(result.frames.size(), 2U);
      for (int64_t i = 0; i < 2; ++i)
        EXPECT_TRUE(result.frames[static_cast<std::size_t>(i)].rgb == bright(corner_square(i)));
      EXPECT_EQ(result.figures.inferred, 2);
      EXPECT_EQ(result.figures.windows, 2 * windows_of(256));
      EXPECT_GT(result.figures.windows_skipped, windows_of(256)) << "one corner has edges";
      EXPECT_LT(result.figures.windows_skipped, 2 * windows_of(256));
      EXPECT_EQ(result.figures.exit_drift_frames, 1);
      EXPECT_EQ(result.figures.exit_drift_max, 0);
      if (scales.size() > 1) continue;
      const int64_t again = result.figures.windows - result.figures.windows_skipped;
      EXPECT_EQ(result.seen, 2 * windows_of(128) + again + windows_of(256));
    }
  }
}

TEST(EarlyExit, WhereNothingIsSureAllIsAsWithout) {
  VideoOptions options;
  options.min_confidence = 1;
  const ExitResult result = run_exit(options, corner_square, 2, 0.01);
  EXPECT_EQ(result.figures.windows_skipped, 0);
  const ExitResult without = run_exit({}, corner_square, 2, 0.01);
  EXPECT_EQ(without.figures.windows, 0) << "no early exit, nothing to report";
  ASSERT_EQ(result.frames.size(), without.frames.size());
  for (std::size_t i = 0; i < without.frames.size(); ++i)
    EXPECT_TRUE(result.frames[i].rgb == without.frames[i].rgb);
}

TEST(EarlyExit, WhatIsTooSmallForTheScaleIsLostAndMeasured) {
  const auto dot = [](int64_t) { return square_picture(kExitSide, kExitSide, 100, 100, 1); };
  VideoOptions options;
  options.min_confidence = 0.9;
  options.measure_drift = 1;
  const ExitResult result = run_exit(options, dot, 3);
  EXPECT_EQ(result.figures.exit_drift_frames, 3);
  EXPECT_EQ(result.figures.exit_drift_mean, 1);
  EXPECT_EQ(result.figures.drift_frames, 0) << "no frame took over a mask";
}

TEST(EarlyExit, ConfidenceIsOneHalfAtTheThreshold) {
  ops::Finish finish;
  finish.kind = ops::Finish::Kind::argmax;
  const at::Tensor classes = at::log(at::tensor({0.2F, 0.7F, 0.1F})).view({1, 3, 1, 1});
  EXPECT_NEAR(confidence_of(classes, finish).item<float>(), 0.7, 1e-6);
  finish.kind = ops::Finish::Kind::threshold;
  finish.threshold = 0.8;
  const auto of = [&](float p) {
    return confidence_of(at::logit(at::tensor({0.0001F, p})).view({1, 2, 1, 1}), finish)
        .item<float>();
  };
  EXPECT_NEAR(of(0.8F), 0.5, 1e-5);
  EXPECT_NEAR(of(0.9F), 0.75, 1e-5);
  EXPECT_NEAR(of(0.4F), 0.75, 1e-5);
  const at::Tensor edge = at::tensor({9.F, 9.F, 9.F, -9.F}).view({2, 1, 1, 2});
  EXPECT_GT(confidence_of(edge, finish)[0].item<float>(), 0.9);
  EXPECT_EQ(confidence_of(edge, finish)[1].item<float>(), 0) << "an edge";
  finish.kind = ops::Finish::Kind::argmax;
  EXPECT_EQ(confidence_of(at::cat({edge, -edge}, 1), finish)[1].item<float>(), 0);
}

TEST(EarlyExit, WrongScalesAreNamed) {
  for (const std::vector<double>& scales :
       {std::vector<double>{0.5, 0.25}, {1.0}, {0.0}, {}, {0.5, 0.5}}) {
    VideoOptions options;
    options.min_confidence = 0.9;
    options.scales = scales;
    EXPECT_NE(message_of<ConfigError>([&] { options.check(); }).find("video.scales"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cytra::pipelines
