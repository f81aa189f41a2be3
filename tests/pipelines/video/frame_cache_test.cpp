#include "pipelines/video/frame_cache.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "pipelines/job/stage_report.h"
#include "tests/pipelines/video_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

struct CachedResult {
  VideoFigures figures;
  std::vector<io::VideoFrame> frames;
};

CachedResult run_cached(const VideoOptions& asked, const std::string& fingerprint = "a") {
  const auto draw = [](int64_t number) { return square_picture(72, 56, 2 * number, number, 20); };
  DrawnVideo video(72, 56, {0, 40, 80, 120, 160, 200}, draw);
  KeptVideo kept;
  StageReport report("test");
  VideoOptions options = asked;
  options.output_kind = "mask";
  CachedResult result;
  result.figures = run_video(video, kept, bright_predictor(1, {}, fingerprint), options, report);
  result.frames = std::move(kept.frames);
  EXPECT_EQ(result.figures.inferred + result.figures.cached, 6);
  for (std::size_t i = 0; i < result.frames.size() && !options.roi; ++i)
    EXPECT_TRUE(result.frames[i].rgb == bright(draw(static_cast<int64_t>(i)))) << i;
  return result;
}

TEST(FrameCache, ASecondRunNeedsNoModelAndAnotherOneAsksNothing) {
  const test::TmpDir dir;
  VideoOptions options;
  options.cache_dir = dir / "cache";
  EXPECT_EQ(run_cached(options).figures.cached, 0);
  EXPECT_EQ(run_cached(options).figures.cached, 6);
  EXPECT_EQ(run_cached(options, "b").figures.cached, 0) << "another model";
  VideoOptions other = options;
  other.roi = "0,0,40,40";
  EXPECT_EQ(run_cached(other).figures.cached, 0) << "another region";
  EXPECT_EQ(run_cached(other).figures.cached, 6);
  other = options;
  other.settings = "int8";
  EXPECT_EQ(run_cached(other).figures.cached, 0);
  EXPECT_EQ(run_cached(options).figures.cached, 6);
}

TEST(FrameCache, ADamagedEntryIsPredictedAgain) {
  const test::TmpDir dir;
  VideoOptions options;
  options.cache_dir = dir / "cache";
  run_cached(options);
  int64_t damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*options.cache_dir)) {
    if (entry.path().extension() != ".safetensors" || damaged == 2) continue;
    std::string bytes = read_file(entry.path().string());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(entry.path().string(), bytes);
    ++damaged;
  }
  EXPECT_EQ(damaged, 2);
  EXPECT_EQ(run_cached(options).figures.cached, 4);
  EXPECT_EQ(run_cached(options).figures.cached, 6);
}

TEST(FrameCache, NumbersOfManyObjectsAreKept) {
  const test::TmpDir dir;
  VideoOptions options;
  options.cache_dir = dir / "cache";
  const io::VideoInfo info;
  FrameCache cache(options, info, bright_predictor());
  const at::Tensor labels = at::tensor({0, 255, 256, 70000}, at::kInt).view({2, 2});
  cache.keep("key", labels);
  const at::Tensor kept = FrameCache(options, info, bright_predictor()).find("key");
  ASSERT_TRUE(kept.defined());
  EXPECT_TRUE(kept.equal(labels));
  EXPECT_FALSE(cache.find("other").defined());
}

}  // namespace
}  // namespace cytra::pipelines
