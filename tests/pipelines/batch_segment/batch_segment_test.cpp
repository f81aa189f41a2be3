#include "pipelines/batch_segment/batch_segment.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <new>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/pipelines/fake_detector.h"
#include "tests/pipelines/fake_segmenter.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

/// Bright squares on a dark ground, `count` of them.
io::Image bright_squares(int64_t height, int64_t width, int64_t count) {
  io::Image image;
  image.shape = {1, 1, height, width};
  image.pixels.assign(image.bytes(), 10);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = 4 + 12 * (i / 3), left = 3 + 13 * (i % 3), side = 5 + i % 4;
    for (int64_t y = top; y < top + side; ++y)
      for (int64_t x = left; x < left + side; ++x)
        image.pixels[static_cast<std::size_t>(y * width + x)] = static_cast<unsigned char>(150 + i);
  }
  return image;
}

struct KeptImages final : SegmentSink {
  bool wants(const SegmentInput&, const std::string&) override { return !is_done; }
  void take(const SegmentedImage& image) override {
    const std::lock_guard lock(mutex);
    if (is_full) throw IoError("no space left");
    images[image.input.name] = image;
  }
  void leave_out(const SegmentInput& input, std::exception_ptr error) override {
    const std::lock_guard lock(mutex);
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& what) {
      failed[input.name] = what.what();
    }
  }
  std::mutex mutex;
  std::map<std::string, SegmentedImage> images;
  std::map<std::string, std::string> failed;
  bool is_full = false, is_done = false;
};

class BatchSegmentTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const io::Image& image, const std::string& view = "") {
    inputs_.push_back({folder_ / (name + ".png"), name, view});
    io::write_png(inputs_.back().path, image);
  }
  /// Nine images of several sizes, with 0 to 8 objects.
  void add_nine() {
    for (int64_t i = 0; i < 9; ++i)
      add("image" + std::to_string(i), bright_squares(40 + 8 * (i % 2), 44 + 4 * (i % 3), i));
  }
  SegmentCounts run(BatchSegmentOptions options) {
    SegmentModels models;
    models.detector_of = [](const std::string& view) { return view + ".ckpt"; };
    models.load_detector = [this](const std::string& path) {
      detectors_.push_back(path);
      return std::make_unique<FakeDetector>(100, 1);
    };
    models.load_segmenter = [this] {
      ++segmenters_;
      return make_segmenter_();
    };
    kept_ = std::make_unique<KeptImages>();
    kept_->is_full = is_full_;
    kept_->is_done = is_done_;
    detectors_.clear();
    segmenters_ = 0;
    StageReport report("test");
    BatchSegmenter segmenter(models, std::move(options), c10::kCPU, report);
    const SegmentCounts counts = segmenter.run(inputs_, *kept_);
    report.finish();
    figures_ = report.figures();
    return counts;
  }
  static BatchSegmentOptions with(const std::string& mode,
                                  int64_t boxes = 3,
                                  int64_t images = 2,
                                  int64_t workers = 3) {
    BatchSegmentOptions options;
    options.mode = mode;
    options.sam_batch_size = {boxes, boxes, boxes};
    options.image_batch_size = images;
    options.io_workers = workers;
    return options;
  }
  /// Every object as text.
  std::map<std::string, std::vector<std::string>> texts() const {
    std::map<std::string, std::vector<std::string>> all;
    for (const auto& [name, image] : kept_->images) {
      auto& own = all[name];
      for (const SegmentedObject& object : image.objects)
        own.push_back(fmt::format("{} {} {} {} {} {}",
                                  object.box[0],
                                  object.box[1],
                                  object.box[2],
                                  object.box[3],
                                  object.score,
                                  object.mask.text()));
    }
    return all;
  }

  test::TmpDir folder_;
  std::vector<SegmentInput> inputs_;
  std::unique_ptr<KeptImages> kept_;
  std::vector<std::string> detectors_;
  int segmenters_ = 0;
  bool is_full_ = false, is_done_ = false;
  std::function<std::unique_ptr<PromptedSegmenter>()> make_segmenter_ = [] {
    return std::make_unique<test::FakeSegmenter>();
  };
  std::vector<StageReport::Figures> figures_;
};

TEST_F(BatchSegmentTest, ModesAndBatchSizesGiveTheSameMasks) {
  add_nine();
  const SegmentCounts naive = run(with("naive"));
  const auto expected = texts();
  ASSERT_EQ(expected.size(), 9U);
  EXPECT_EQ(naive.boxes, 36);
  EXPECT_EQ(naive.encoded, 36);  // each box by itself
  EXPECT_EQ(detectors_.size(), 9U);
  EXPECT_EQ(segmenters_, 9);
  for (std::size_t i = 0; i < 9; ++i) {
    const SegmentedImage& image = kept_->images.at("image" + std::to_string(i));
    ASSERT_EQ(image.objects.size(), i);
    for (const SegmentedObject& object : image.objects) {
      // An embedding is half as fine as the image: its outline lies within a pixel and a half.
      const auto [left, top, width, height] = object.mask.box();
      EXPECT_NEAR(static_cast<double>(left), object.box[0], 1.5);
      EXPECT_NEAR(static_cast<double>(top), object.box[1], 1.5);
      EXPECT_NEAR(static_cast<double>(left + width), object.box[2], 1.5);
      EXPECT_NEAR(static_cast<double>(top + height), object.box[3], 1.5);
      EXPECT_GT(object.mask.area(), width * height * 3 / 4);
    }
  }
  for (const auto& [boxes, images] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {5, 4}, {64, 16}}) {
    for (const std::string mode : {"optimized", "parallel"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", mode, boxes, images));
      const SegmentCounts counts = run(with(mode, boxes, images));
      EXPECT_EQ(counts.images, 9);
      EXPECT_EQ(counts.boxes, 36);
      EXPECT_EQ(counts.encoded, 8);  // one has no objects
      EXPECT_EQ(detectors_.size(), 1U);
      EXPECT_EQ(segmenters_, 1);
      EXPECT_EQ(texts(), expected);
    }
  }
}

TEST_F(BatchSegmentTest, ABadImageCostsItselfAlone) {
  add_nine();
  std::ofstream(inputs_[3].path) << "no image";
  add("rgb", [] {
    io::Image image = bright_squares(40, 40, 2);
    image.shape[0] = 3;
    const std::vector<unsigned char> one = image.pixels;
    for (int i = 0; i < 2; ++i) image.pixels.insert(image.pixels.end(), one.begin(), one.end());
    return image;
  }());
  inputs_.push_back({folder_ / "missing.png", "missing", ""});
  for (const std::string mode : {"naive", "optimized", "parallel"}) {
    SCOPED_TRACE(mode);
    EXPECT_EQ(run(with(mode)).images, 9);  // the detector looks at the first channel alone
    EXPECT_EQ(kept_->images.size(), 9U);
    ASSERT_EQ(kept_->failed.size(), 2U);
    EXPECT_NE(kept_->failed.at("image3").find("image3.png"), std::string::npos);
    EXPECT_EQ(kept_->failed.count("missing"), 1U);
  }
}

TEST_F(BatchSegmentTest, MasksThatAreNotFiniteAreAnError) {
  struct Damaged final : PromptedSegmenter {
    Damaged() : PromptedSegmenter(64, nn::PixelScale{}) {}
    at::Tensor encode(const at::Tensor& images) override { return images; }
    at::Tensor masks(const at::Tensor&, const at::Tensor& boxes) override {
      return at::full({boxes.size(0), 16, 16}, NAN);
    }
    std::string fingerprint() const override { return "damaged"; }
  };
  make_segmenter_ = [] { return std::make_unique<Damaged>(); };
  add("none", bright_squares(40, 40, 0));
  add("two", bright_squares(40, 40, 2));
  for (const std::string mode : {"naive", "optimized", "parallel"}) {
    run(with(mode));
    EXPECT_EQ(kept_->images.count("none"), 1U) << mode;
    ASSERT_EQ(kept_->failed.count("two"), 1U) << mode;
    EXPECT_NE(kept_->failed.at("two").find("not finite"), std::string::npos);
  }
}

TEST_F(BatchSegmentTest, LargeImagesAreSegmentedByTiles) {
  io::Image image;
  image.shape = {1, 1, 300, 260};
  image.pixels.assign(image.bytes(), 10);
  const auto fill = [&](int64_t top, int64_t left, int64_t height, int64_t width) {
    for (int64_t y = top; y < top + height; ++y) {
      const auto row = image.pixels.begin() + y * 260 + left;
      std::fill(row, row + width, 200);
    }
  };
  fill(2, 20, 12, 200);  // no tile holds it
  std::size_t objects = 1;
  for (int64_t y = 22; y < 290; y += 17) {
    for (int64_t x = 1 + y % 5; x < 250; x += 19, ++objects) fill(y, x, 9, 8);
  }
  add("large", image);
  add("small", bright_squares(60, 60, 5));
  std::map<std::string, std::vector<std::string>> expected;
  for (const std::string mode : {"naive", "optimized", "parallel"}) {
    BatchSegmentOptions options = with(mode, 16);
    options.tile = 64;
    const SegmentCounts counts = run(options);
    const SegmentedImage& made = kept_->images.at("large");
    ASSERT_EQ(made.objects.size(), objects) << mode;
    EXPECT_EQ(made.height, 300);
    EXPECT_EQ(made.width, 260);
    for (std::size_t i = 1; i < objects; ++i) {
      const SegmentedObject& object = made.objects[i];
      const auto [left, top, width, height] = object.mask.box();
      EXPECT_NEAR(static_cast<double>(left), object.box[0], 1.5);
      EXPECT_NEAR(static_cast<double>(top), object.box[1], 1.5);
      EXPECT_NEAR(static_cast<double>(left + width), object.box[2], 1.5);
      EXPECT_NEAR(static_cast<double>(top + height), object.box[3], 1.5);
    }
    EXPECT_NEAR(static_cast<double>(made.objects[0].mask.box()[2]), 200, 12) << "of the whole";
    EXPECT_LE(counts.encoded, mode == "naive" ? counts.boxes : 38) << "6 x 6 tiles, whole, small";
    if (expected.empty()) expected = texts();
    EXPECT_EQ(texts(), expected) << mode;
  }
  BatchSegmentOptions cached = with("parallel", 16);
  cached.tile = 64;
  cached.cache.cache_dir = folder_ / "cache";
  const int64_t encoded = run(cached).encoded;
  EXPECT_EQ(run(cached).cached, encoded);
  EXPECT_EQ(texts(), expected);
}

TEST_F(BatchSegmentTest, AFullDiskEndsTheRun) {
  add_nine();
  is_full_ = true;
  for (const std::string mode : {"naive", "optimized", "parallel"})
    EXPECT_THROW(run(with(mode)), IoError) << mode;
}

TEST_F(BatchSegmentTest, EachViewHasItsDetectorLoadedOnce) {
  for (int64_t i = 0; i < 6; ++i)
    add("image" + std::to_string(i), bright_squares(40, 40, 2), i % 2 == 0 ? "front" : "left");
  for (const std::string mode : {"optimized", "parallel"}) {
    run(with(mode, 4, 1));
    EXPECT_EQ(detectors_, (std::vector<std::string>{"front.ckpt", "left.ckpt"}));
    EXPECT_EQ(kept_->images.size(), 6U);
  }
}

TEST_F(BatchSegmentTest, WhereAllIsDoneNoModelIsLoaded) {
  add_nine();
  is_done_ = true;
  for (const char* mode : {"naive", "optimized", "parallel"}) {
    EXPECT_EQ(run(with(mode)).images, 0);
    EXPECT_EQ(segmenters_, 0) << mode;
    EXPECT_TRUE(detectors_.empty()) << mode;
  }
}

TEST_F(BatchSegmentTest, AModelThatCannotBeLoadedEndsTheRun) {
  add_nine();
  make_segmenter_ = []() -> std::unique_ptr<PromptedSegmenter> {
    throw DataError("sam.pth: no weights");
  };
  for (const char* mode : {"naive", "optimized", "parallel"}) {
    EXPECT_THROW(run(with(mode)), DataError) << mode;
    EXPECT_TRUE(kept_->failed.empty()) << "no image is at fault, " << mode;
  }
}

TEST_F(BatchSegmentTest, KeptEncodingsGoByTheFilesContent) {
  add_nine();
  BatchSegmentOptions options = with("parallel");
  options.cache.cache_dir = folder_ / "cache";
  const SegmentCounts first = run(options);
  EXPECT_EQ(first.encoded, 8);
  EXPECT_EQ(first.cached, 0);
  const auto expected = texts();
  for (SegmentInput& input : inputs_) {  // other files of the same bytes
    std::filesystem::rename(input.path, input.path + ".moved.png");
    input.path += ".moved.png";
  }
  const SegmentCounts second = run(options);
  EXPECT_EQ(second.encoded, 0);
  EXPECT_EQ(second.cached, 8);
  EXPECT_EQ(texts(), expected);
}

/// Takes four boxes, and two images, at a time.
struct SmallSegmenter final : PromptedSegmenter {
  SmallSegmenter() : PromptedSegmenter(64, {}) {}
  at::Tensor encode(const at::Tensor& images) override {
    if (images.size(0) > 2) throw std::bad_alloc();
    return inner.encode(images);
  }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    if (boxes.size(0) > 4) throw std::bad_alloc();
    return inner.masks(embeddings, boxes);
  }
  std::string fingerprint() const override { return "small"; }
  test::FakeSegmenter inner;
};

TEST_F(BatchSegmentTest, GoesOnWithSmallerBatchesWhereMemoryRunsOut) {
  add_nine();
  run(with("optimized", 32, 8));
  const auto expected = texts();
  make_segmenter_ = [] { return std::make_unique<SmallSegmenter>(); };
  for (const std::string mode : {"optimized", "parallel"}) {
    run(with(mode, 32, 8));
    EXPECT_EQ(texts(), expected);
    EXPECT_TRUE(kept_->failed.empty());
  }
}

TEST_F(BatchSegmentTest, StagesCountWhatPassedThem) {
  add_nine();
  run(with("parallel"));
  std::map<std::string, int64_t> items;
  for (const auto& stage : figures_) items[stage.name] = stage.items;
  EXPECT_EQ(items.at("load"), 9);
  EXPECT_EQ(items.at("compute"), 9);
  EXPECT_EQ(items.at("  detect"), 9);
  EXPECT_EQ(items.at("  encode"), 8);
  EXPECT_EQ(items.at("  masks"), 36);
  EXPECT_EQ(items.at("save"), 9);
}

TEST(SegmentedImage, TheHigherScoreIsSeenInTheLabels) {
  const std::vector<unsigned char> left{1, 1, 0, 1, 1, 0}, right{0, 1, 1, 0, 1, 1};
  SegmentedImage image;
  image.height = 2;
  image.width = 3;
  image.objects = {{{0, 0, 2, 2}, 0.9F, 0, io::encode_rle(left.data(), 2, 3)},
                   {{1, 0, 3, 2}, 0.4F, 0, io::encode_rle(right.data(), 2, 3)}};
  const io::Image labels = image.labels();
  const auto* pixels = reinterpret_cast<const uint16_t*>(labels.pixels.data());
  EXPECT_EQ(std::vector<uint16_t>(pixels, pixels + 6), (std::vector<uint16_t>{1, 1, 2, 1, 1, 2}));
  EXPECT_EQ(image.objects[1].mask.area(), 4);
}

}  // namespace
}  // namespace cytra::pipelines
