#include "pipelines/video/video.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/image.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/video/frame_selector.h"
#include "tests/pipelines/video_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kWide = 72, kHigh = 56;

std::vector<int64_t> every_40_ms(int64_t frames) {
  std::vector<int64_t> pts;
  for (int64_t i = 0; i < frames; ++i) pts.push_back(40 * i);
  return pts;
}

std::vector<unsigned char> walking_square(int64_t number) {
  return square_picture(kWide, kHigh, 2 * number, number, 20);
}
std::vector<unsigned char> resting_square(int64_t) {
  return square_picture(kWide, kHigh, 30, 10, 20);
}

struct VideoResult {
  VideoFigures figures;
  std::vector<io::VideoFrame> frames;
};

VideoResult run_drawn(DrawnVideo video, VideoOptions options, int64_t channels = 1) {
  options.output_kind = "mask";
  KeptVideo kept;
  StageReport report("test");
  VideoResult result;
  result.figures = run_video(video, kept, bright_predictor(channels), options, report);
  EXPECT_TRUE(kept.is_finished);
  EXPECT_EQ(result.figures.written, static_cast<int64_t>(kept.frames.size()));
  EXPECT_EQ(result.figures.inferred + result.figures.reused, result.figures.written);
  result.frames = std::move(kept.frames);
  return result;
}

TEST(Video, EveryFrameComesOutInOrderWithItsTimeAndMask) {
  const std::vector<int64_t> pts{0, 7, 41, 42, 100, 350, 351, 900, 1000, 1333, 2000};
  for (const int64_t batch : {1, 4}) {
    for (const int64_t channels : {1, 3}) {
      SCOPED_TRACE(batch);
      VideoOptions options;
      options.batch_size = batch;
      const VideoResult result = run_drawn({kWide, kHigh, pts, walking_square}, options, channels);
      ASSERT_EQ(result.frames.size(), pts.size());
      EXPECT_EQ(result.figures.inferred, static_cast<int64_t>(pts.size()));
      EXPECT_EQ(result.figures.dropped, 0);
      EXPECT_DOUBLE_EQ(result.figures.last_s, 2);
      for (std::size_t i = 0; i < pts.size(); ++i) {
        EXPECT_EQ(result.frames[i].pts, pts[i]);
        EXPECT_TRUE(result.frames[i].rgb == bright(walking_square(static_cast<int64_t>(i)))) << i;
      }
    }
  }
}

TEST(Video, OverlaysChangeNothingButTheForeground) {
  DrawnVideo video(kWide, kHigh, {0}, resting_square);
  KeptVideo kept;
  StageReport report("test");
  run_video(video, kept, bright_predictor(), {}, report);
  const std::vector<unsigned char> before = resting_square(0), mask = bright(before);
  ASSERT_EQ(kept.frames.size(), 1U);
  for (std::size_t i = 0; i < before.size(); i += 3) {
    const bool is_same = std::equal(before.begin() + static_cast<std::ptrdiff_t>(i),
                                    before.begin() + static_cast<std::ptrdiff_t>(i + 3),
                                    kept.frames[0].rgb.begin() + static_cast<std::ptrdiff_t>(i));
    ASSERT_EQ(is_same, mask[i] == 0) << i;
  }
}

TEST(Video, AlikeFramesTakeOverTheMaskButNotForEver) {
  VideoOptions options;
  options.skip_threshold = 0.01;
  options.max_gap = 3;
  options.measure_drift = 2;
  const VideoResult result = run_drawn({kWide, kHigh, every_40_ms(12), resting_square}, options);
  EXPECT_EQ(result.figures.inferred, 3) << "frames 0, 4 and 8";
  EXPECT_EQ(result.figures.reused, 9);
  EXPECT_EQ(result.figures.longest_gap, 3);
  EXPECT_EQ(result.figures.drift_frames, 4);
  EXPECT_EQ(result.figures.drift_max, 0);
  for (const io::VideoFrame& frame : result.frames)
    EXPECT_TRUE(frame.rgb == bright(resting_square(0)));
}

TEST(Video, DriftIsOneMinusIntersectionOverUnion) {
  VideoOptions options;
  options.skip_threshold = 1;  // all are alike
  options.max_gap = 100;
  options.measure_drift = 1;
  const VideoResult result = run_drawn({kWide, kHigh, every_40_ms(3), walking_square}, options);
  EXPECT_EQ(result.figures.reused, 2);
  ASSERT_EQ(result.figures.drift_frames, 2);
  const auto drift = [](double shift) {  // squares of 20 pixels, apart by 2 and 1 pixels a frame
    const double common = (20 - 2 * shift) * (20 - shift);
    return 1 - common / (800 - common);
  };
  EXPECT_NEAR(result.figures.drift_max, drift(2), 1e-9);
  EXPECT_NEAR(result.figures.drift_mean, (drift(1) + drift(2)) / 2, 1e-9);
  EXPECT_TRUE(result.frames[2].rgb == bright(walking_square(0))) << "measured, not shown";
}

TEST(Video, MotionAlonePredictsWhatMovedAndGivesTheWholeMask) {
  constexpr int64_t kSide = 256;
  const auto draw = [](int64_t number) {
    std::vector<unsigned char> rgb = square_picture(kSide, kSide, 200, 200, 24);
    const std::vector<unsigned char> moving =
        square_picture(kSide, kSide, 8 + 4 * (number / 2), 16, 24);
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = std::max(rgb[i], moving[i]);
    return rgb;
  };
  VideoOptions options;
  options.roi = "motion";
  options.max_gap = 8;
  const VideoResult result = run_drawn({kSide, kSide, every_40_ms(16), draw}, options);
  EXPECT_EQ(result.figures.reused, 7) << "every second frame, but one that is due";
  EXPECT_EQ(result.figures.partial, 7);
  for (std::size_t i = 0; i < result.frames.size(); ++i)
    EXPECT_TRUE(result.frames[i].rgb == bright(draw(static_cast<int64_t>(i)))) << i;
}

/// The picture turned clockwise, as a player shows it.
std::vector<unsigned char> turned(const std::vector<unsigned char>& rgb, int turns) {
  const at::Tensor stored =
      at::from_blob(const_cast<unsigned char*>(rgb.data()), {kHigh, kWide, 3}, at::kByte);
  const at::Tensor shown = at::rot90(stored, -turns, {0, 1}).contiguous();
  const auto* data = shown.const_data_ptr<uint8_t>();
  return {data, data + shown.numel()};
}

TEST(Video, RegionsAreThoseOfTheUprightPicture) {
  const test::TmpDir dir;
  for (int turns = 0; turns < 4; ++turns) {
    SCOPED_TRACE(turns);
    const int64_t width = turns % 2 == 1 ? kHigh : kWide, height = turns % 2 == 1 ? kWide : kHigh;
    const auto white = [](int64_t) {
      return std::vector<unsigned char>(static_cast<std::size_t>(3 * kWide * kHigh), 255);
    };
    std::vector<unsigned char> wanted(static_cast<std::size_t>(3 * kWide * kHigh), 0);
    io::Image mask;
    mask.shape = {1, 1, height, width};
    mask.pixels.assign(static_cast<std::size_t>(width * height), 0);
    for (int64_t y = 5; y < 5 + 30; ++y) {
      for (int64_t x = 12; x < 12 + 40; ++x) {
        std::fill_n(wanted.data() + 3 * (y * width + x), 3, 255);
        mask.pixels[static_cast<std::size_t>(y * width + x)] = 1;
      }
    }
    const std::string path = dir / ("mask" + std::to_string(turns) + ".png");
    io::write_png(path, mask);
    for (const std::string& roi : {std::string("12,5,40,30"), path}) {
      VideoOptions options;
      options.roi = roi;
      const VideoResult result = run_drawn({kWide, kHigh, {0}, white, turns}, options);
      ASSERT_EQ(result.frames.size(), 1U);
      EXPECT_TRUE(turned(result.frames[0].rgb, turns) == wanted) << roi;
    }
  }
}

TEST(Video, RegionsThatAreNoneAreNamed) {
  for (const auto& [roi, word] : std::vector<std::pair<std::string, std::string>>{
           {"0,0,73,10", "72x56"}, {"1,2,3", "x,y,width,height"}, {"-1,0,5,5", "whole numbers"}}) {
    VideoOptions options;
    options.roi = roi;
    EXPECT_NE(message_of<ConfigError>([&, &roi = roi] {
                run_drawn({kWide, kHigh, {0}, resting_square}, options);
              }).find(word),
              std::string::npos)
        << roi;
  }
}

/// Of a source that is faster than the model.
VideoResult run_hurried(bool is_live) {
  DrawnVideo video(kWide, kHigh, every_40_ms(200), walking_square);
  if (is_live) video.be_live();
  video.pause_ms = 1;
  KeptVideo kept;
  StageReport report("test");
  VideoResult result;
  const auto slow = [](at::Tensor&) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  result.figures = run_video(video, kept, bright_predictor(1, slow), {}, report);
  result.frames = std::move(kept.frames);
  return result;
}

TEST(Video, ALiveSourceDropsAndCountsAFileNever) {
  const VideoResult live = run_hurried(true), file = run_hurried(false);
  EXPECT_EQ(file.figures.dropped, 0);
  EXPECT_EQ(file.figures.written, 200);
  EXPECT_EQ(live.figures.frames_in, 200);
  EXPECT_GT(live.figures.dropped, 0);
  EXPECT_EQ(live.figures.written, 200 - live.figures.dropped);
  int64_t last = -1;
  for (const io::VideoFrame& frame : live.frames) {
    EXPECT_GT(frame.pts, last);
    last = frame.pts;
  }
  EXPECT_EQ(last, 40 * 199) << "the newest is kept";
}

TEST(Video, ALiveSourceWaitsUntilTheModelHasRun) {
  std::atomic<int> runs{0}, early{0};
  const auto draw = [&](int64_t number) {
    if (number > 0 && runs == 0) ++early;
    return walking_square(number);
  };
  DrawnVideo video(kWide, kHigh, every_40_ms(6), draw);
  video.be_live();
  KeptVideo kept;
  StageReport report("test");
  const auto slow_at_first = [&](at::Tensor&) {
    if (runs == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ++runs;
  };
  run_video(video, kept, bright_predictor(1, slow_at_first), {}, report);
  EXPECT_EQ(early, 0) << "frames that would be dropped while the engine is made";
  EXPECT_EQ(kept.frames.front().number, 0);
}

TEST(Video, WhatFailsInAnyStageEndsAllAndFinishesNothing) {
  StageReport report("test");
  {
    DrawnVideo video(kWide, kHigh, every_40_ms(50), walking_square);
    KeptVideo kept;
    kept.fails_at = 3;
    EXPECT_THROW(run_video(video, kept, bright_predictor(), {}, report), IoError);
    EXPECT_FALSE(kept.is_finished);
  }
  DrawnVideo video(kWide, kHigh, every_40_ms(50), walking_square);
  KeptVideo kept;
  const auto spoil = [](at::Tensor& logits) { logits.fill_(std::nan("")); };
  VideoOptions options;
  options.batch_size = 2;
  EXPECT_NE(message_of<DataError>([&] {
              run_video(video, kept, bright_predictor(1, spoil), options, report);
            }).find("frame 0"),
            std::string::npos);
  EXPECT_FALSE(kept.is_finished);
}

TEST(Video, AStopFinishesWhatIsWritten) {
  DrawnVideo video(kWide, kHigh, every_40_ms(1000), walking_square);
  KeptVideo kept;
  StageReport report("test");
  std::atomic<bool> is_stopped{false};
  const VideoFigures figures = run_video(video,
                                         kept,
                                         bright_predictor(),
                                         {},
                                         report,
                                         {[&] { return is_stopped.load(); },
                                          [&](int64_t frames) {
                                            if (frames == 5) is_stopped = true;
                                          }});
  EXPECT_TRUE(kept.is_finished);
  EXPECT_GE(figures.written, 5);
  EXPECT_LT(figures.written, 1000);
  for (std::size_t i = 0; i < kept.frames.size(); ++i)
    EXPECT_EQ(kept.frames[i].number, static_cast<int64_t>(i));
}

TEST(Video, MasksOfManyClassesShowEachAsForeground) {
  for (const int64_t highest : {1, 2, 255, 256, 300, 70000}) {
    const auto last = static_cast<int32_t>(highest);
    const std::vector<int32_t> labels{0, 1, std::min(2, last), last};
    std::vector<unsigned char> rgb(3 * labels.size());
    paint_labels(labels.data(), 4, highest, rgb.data());
    EXPECT_EQ(rgb[0], 0);
    EXPECT_GE(rgb[3], 1) << highest;
    EXPECT_GE(rgb[6], 1) << highest;
    EXPECT_EQ(rgb[9], 255) << highest;
  }
}

TEST(Video, ThumbnailsAreMeansOfSquares) {
  std::vector<unsigned char> rgb(3 * 12 * 9, 0);
  const auto set = [&](int64_t x, int64_t y) {
    std::fill_n(rgb.data() + 3 * (y * 12 + x), 3, 255);
  };
  set(0, 0);
  set(7, 7);
  set(11, 8);
  const Thumbnail small = thumbnail_of(rgb.data(), 12, {0, 0, 12, 9});
  ASSERT_EQ(small.width, 2);
  ASSERT_EQ(small.height, 2);
  EXPECT_FLOAT_EQ(small.luma[0], 2.0F / 64);
  EXPECT_FLOAT_EQ(small.luma[1], 0);
  EXPECT_FLOAT_EQ(small.luma[3], 1.0F / 4);
}

}  // namespace
}  // namespace cytra::pipelines
