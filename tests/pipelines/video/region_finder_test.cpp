#include "pipelines/video/region_finder.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "base/files.h"
#include "pipelines/job/stage_report.h"
#include "tests/pipelines/video_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kPictureWidth = 256, kPictureHeight = 160;

/// Saves a detector that finds the box around what is brighter than 1/2 in each half of a picture.
std::string half_detector(const test::TmpDir& folder) {
  torch::jit::Module module("Detector");
  module.define(R"(def forward(self, x: Tensor):
        boxes = torch.zeros([0, 4])
        half = x.size(3) // 2
        for side in [0, half]:
            bright = torch.nonzero(x[0, 0, :, side:side + half] > 0.5).flip([1])
            if bright.size(0) > 0:
                ends = torch.cat([bright.amin(0), bright.amax(0) + 1])
                ends = ends + torch.tensor([side, 0, side, 0])
                boxes = torch.cat([boxes, ends.float().unsqueeze(0)])
        return boxes, torch.ones([boxes.size(0)]), torch.ones([boxes.size(0)])
)");
  module.save(folder / "halves.pt");
  return folder / "halves.pt";
}

/// A square in each half; a strip that the model takes for foreground, and the detector doesn't.
at::Tensor picture_of_two(int64_t shift = 0) {
  at::Tensor picture = at::full({kPictureHeight, kPictureWidth, 3}, 10, at::kByte);
  picture.slice(0, 0, 160).slice(1, 88, 112).fill_(100);
  picture.slice(0, 40, 60).slice(1, 40 + shift, 60 + shift).fill_(200);
  picture.slice(0, 100, 120).slice(1, 200, 220).fill_(200);
  return picture;
}

std::vector<unsigned char> bytes_of(const at::Tensor& picture) {
  const at::Tensor whole = picture.contiguous();
  const auto* data = whole.const_data_ptr<uint8_t>();
  return {data, data + whole.numel()};
}

/// Values that depend on their neighbours in the window.
void blur(at::Tensor& logits) {
  logits = at::avg_pool2d(logits, 9, 1, 4);
}

struct RegionsResult {
  VideoFigures figures;
  std::vector<at::Tensor> masks;  // (H,W,3), upright
  int64_t detected = 0;           // frames that the detector saw
};

/// `draw`: the upright picture.
RegionsResult run_regions(VideoOptions options,
                          const std::function<at::Tensor(int64_t)>& draw,
                          int64_t frames = 1,
                          int turns = 0,
                          const Spoil& spoil = blur,
                          const std::string& decoder = "null") {
  const auto stored = [&](int64_t number) { return at::rot90(draw(number), turns, {0, 1}); };
  const int64_t height = stored(0).size(0), width = stored(0).size(1);
  std::vector<int64_t> pts;
  for (int64_t i = 0; i < frames; ++i) pts.push_back(40 * i);
  DrawnVideo video(
      width, height, pts, [&](int64_t number) { return bytes_of(stored(number)); }, turns);
  KeptVideo kept;
  StageReport report("test");
  options.output_kind = "mask";
  RegionsResult result;
  result.figures = run_video(video, kept, bright_predictor(1, spoil, "", decoder), options, report);
  for (io::VideoFrame& frame : kept.frames) {
    const at::Tensor mask = at::from_blob(frame.rgb.data(), {height, width, 3}, at::kByte);
    result.masks.push_back(at::rot90(mask, -turns, {0, 1}).contiguous());
  }
  for (const StageReport::Figures& stage : report.figures())
    if (stage.name == "  detect") result.detected = stage.items;
  return result;
}

VideoOptions region_options(const std::string& roi) {
  VideoOptions options;
  options.roi = roi;
  options.roi_margin = 8;
  return options;
}

TEST(RegionFinder, RegionsArePaddedRoundedAndAsLargeAsTheWindow) {
  const FrameBox frame{0, 0, 250, 130};
  const auto of = [&](const FrameBox& box, int64_t margin, const FrameBox& least = {}) {
    return region_around(box, margin, frame, least);
  };
  EXPECT_EQ(of({40, 40, 20, 20}, 8), (FrameBox{32, 32, 64, 64}));
  EXPECT_EQ(of({40, 40, 20, 20}, 4), (FrameBox{32, 32, 32, 32}));
  EXPECT_EQ(of({1, 1, 5, 5}, 8), (FrameBox{0, 0, 32, 32})) << "the frame ends there";
  EXPECT_EQ(of({240, 120, 10, 10}, 8), (FrameBox{224, 96, 26, 34}));
  EXPECT_EQ(of({40, 40, 20, 20}, 8, {0, 0, 128, 64}), (FrameBox{0, 32, 128, 64}));
  EXPECT_EQ(of({240, 120, 10, 10}, 8, {0, 0, 64, 512}), (FrameBox{160, 0, 90, 130}));
}

TEST(RegionFinder, OnlyRegionsThatOverlapAreJoined) {
  const FrameBox a{0, 0, 10, 10}, beside{10, 0, 10, 10}, over{9, 5, 10, 10}, far{50, 0, 10, 10};
  EXPECT_EQ(joined({}), (std::vector<FrameBox>{}));
  EXPECT_EQ(joined({a, beside, far}), (std::vector<FrameBox>{a, beside, far}));
  EXPECT_EQ(joined({a, beside, far, over}), (std::vector<FrameBox>{far, {0, 0, 20, 15}}))
      << "a third one joins two";
}

TEST(RegionFinder, EachRegionIsPredictedAsItsCropAndTheRestIsBackground) {
  const test::TmpDir folder;
  const std::string detector = half_detector(folder);
  for (int turns = 0; turns < 4; ++turns) {
    for (const int64_t batch : {1, 3}) {
      SCOPED_TRACE(turns);
      VideoOptions options = region_options(detector);
      options.batch_size = batch;
      const auto draw = [](int64_t) { return picture_of_two(); };
      const RegionsResult result = run_regions(options, draw, 3, turns);
      const at::Tensor first = run_regions(region_options("32,32,64,64"), draw, 1, turns).masks[0];
      const at::Tensor second =
          run_regions(region_options("192,64,64,64"), draw, 1, turns).masks[0];
      EXPECT_GT(first.count_nonzero().item<int64_t>(), 3 * 400)
          << "the square and a part of the strip";
      ASSERT_EQ(result.masks.size(), 3U);
      for (const at::Tensor& mask : result.masks)
        EXPECT_TRUE(mask.equal(at::maximum(first, second)));
      EXPECT_EQ(result.figures.inferred, 3);
      EXPECT_EQ(result.figures.partial, 0);
      EXPECT_EQ(result.figures.regions, 6);
      EXPECT_NEAR(result.figures.regions_share, 2. * 64 * 64 / (256 * 160), 1e-9);
    }
  }
}

TEST(RegionFinder, WithoutBoxesAllIsBackgroundAndNoModelRuns) {
  const test::TmpDir folder;
  const auto draw = [](int64_t number) {
    return number == 1 ? picture_of_two().clamp_max(100) : picture_of_two();
  };
  int64_t windows = 0;
  const auto counted = [&](at::Tensor& logits) { windows += logits.size(0); };
  const RegionsResult result =
      run_regions(region_options(half_detector(folder)), draw, 2, 0, counted);
  const int64_t of_one = windows;
  ASSERT_EQ(result.masks.size(), 2U);
  EXPECT_GT(result.masks[0].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(result.masks[1].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(result.figures.inferred, 1);
  EXPECT_EQ(result.figures.empty, 1);
  windows = 0;
  run_regions(region_options(folder / "halves.pt"), draw, 1, 0, counted);
  EXPECT_EQ(windows, of_one);
}

TEST(RegionFinder, RegionsAreKeptUntilTheDetectorSeesTheNextFrame) {
  const test::TmpDir folder;
  VideoOptions options = region_options(half_detector(folder));
  options.roi_every = 3;
  const auto draw = [](int64_t number) { return picture_of_two(number < 2 ? number : -36); };
  const RegionsResult result = run_regions(options, draw, 4);
  EXPECT_EQ(result.detected, 2);
  EXPECT_EQ(result.figures.regions, 8);
  const auto left = [&](std::size_t frame) {
    return result.masks[frame].slice(1, 0, 32).count_nonzero().item<int64_t>();
  };
  EXPECT_EQ(left(2), 0) << "the square has left the region";
  EXPECT_GT(left(3), 0);
  options.skip_threshold = 1;
  options.max_gap = 1;
  options.measure_drift = 1;
  const RegionsResult skipping = run_regions(options, draw, 4);
  EXPECT_EQ(skipping.figures.inferred, 2);
  EXPECT_EQ(skipping.figures.drift_frames, 2);
}

TEST(RegionFinder, MeasuringChangesNoFrame) {
  const test::TmpDir folder;
  VideoOptions options = region_options(half_detector(folder));
  const auto walking = [](int64_t number) { return picture_of_two(4 * number - 30); };
  options.skip_threshold = 1;
  for (const auto& [every, gap] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 2}, {2, 4}, {5, 2}}) {
    options.roi_every = every;
    options.max_gap = gap;
    options.measure_drift = 0;
    const RegionsResult plain = run_regions(options, walking, 12);
    for (const int64_t measured : {1, 2, 3}) {
      options.measure_drift = measured;
      const RegionsResult result = run_regions(options, walking, 12);
      EXPECT_GT(result.figures.drift_frames, 0);
      for (std::size_t i = 0; i < plain.masks.size(); ++i)
        EXPECT_TRUE(result.masks[i].equal(plain.masks[i]))
            << every << ' ' << gap << ' ' << measured << ": frame " << i;
    }
  }
}

TEST(RegionFinder, ObjectsThatMoveHaveOtherNumbersThanThoseThatRest) {
  const auto star = [](at::Tensor& logits) {  // of one object around the middle of each square
    const at::Tensor middle = at::avg_pool2d(logits.narrow(1, 1, 1), 21, 1, 10) / 50;
    logits = at::cat({middle, at::full_like(middle, 20).expand({-1, 8, -1, -1})}, 1);
  };
  const auto one_moves = [](int64_t number) {
    at::Tensor picture = at::full({kPictureHeight, kPictureWidth, 3}, 10, at::kByte);
    picture.slice(0, 40, 60).slice(1, 40 + 3 * number, 60 + 3 * number).fill_(200);
    picture.slice(0, 100, 120).slice(1, 200, 220).fill_(200);
    return picture;
  };
  const RegionsResult result = run_regions(region_options("motion"),
                                           one_moves,
                                           4,
                                           0,
                                           star,
                                           "{_target_: InstanceDecoder, method: stars}");
  EXPECT_EQ(result.figures.partial, 3);
  for (const at::Tensor& mask : result.masks) {
    const at::Tensor grey = mask.select(2, 0);
    const auto left = grey.slice(1, 0, 128).max().item<int>(),
               right = grey.slice(1, 128, 256).max().item<int>();
    EXPECT_GT(left, 0);
    EXPECT_GT(right, 0);
    EXPECT_NE(left, right);
  }
}

TEST(RegionFinder, ObjectsOfAllRegionsHaveNumbersOfTheirOwn) {
  const test::TmpDir folder;
  const auto star = [](at::Tensor& logits) {  // of one object around the middle of each square
    const at::Tensor middle = at::avg_pool2d(logits.narrow(1, 1, 1), 21, 1, 10) / 50;
    logits = at::cat({middle, at::full_like(middle, 20).expand({-1, 8, -1, -1})}, 1);
  };
  const auto squares = [](int64_t) {
    const at::Tensor picture = picture_of_two();
    picture.slice(1, 88, 112).fill_(10);
    return picture;
  };
  const RegionsResult result = run_regions(region_options(half_detector(folder)),
                                           squares,
                                           1,
                                           0,
                                           star,
                                           "{_target_: InstanceDecoder, method: stars}");
  const at::Tensor mask = result.masks.at(0).select(2, 0);
  const auto highest = [&](int64_t from, int64_t to) {
    return mask.slice(1, from, to).max().item<int>();
  };
  EXPECT_EQ(std::min(highest(0, 128), highest(128, 256)), 1);
  EXPECT_EQ(std::max(highest(0, 128), highest(128, 256)), 2);
}

TEST(RegionFinder, FilesThatHoldNoDetectorAreNamed) {
  const test::TmpDir folder;
  write_file(folder / "text.pt", "no model");
  for (const std::string& roi : {folder / "text.pt", folder / "missing.ckpt"}) {
    EXPECT_NE(message_of<std::exception>([&] {
                run_regions(region_options(roi), [](int64_t) { return picture_of_two(); });
              }).find(roi),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cytra::pipelines
