#include "pipelines/batch_segment/profile.h"

#include <new>
#include <thread>

#include <gtest/gtest.h>

#include "tests/pipelines/fake_segmenter.h"
#include "tests/pipelines/found.h"

namespace cytra::pipelines {
namespace {

/// Has memory for eight boxes.
struct EightBoxes final : PromptedSegmenter {
  EightBoxes() : PromptedSegmenter(64, {}) {}
  at::Tensor encode(const at::Tensor& images) override { return inner.encode(images); }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    if (boxes.size(0) > 8) throw std::bad_alloc();
    EXPECT_EQ(embeddings.size(0), boxes.size(0));
    return inner.masks(embeddings, boxes);
  }
  std::string fingerprint() const override { return "eight"; }
  test::FakeSegmenter inner;
};

TEST(SegmentProfile, ABatchThatDoesNotFitIsARowAndTheLast) {
  EightBoxes segmenter;
  const std::vector<BoxBatch> batches =
      profile_boxes(segmenter,
                    at::rand({1, 40, 50}),
                    boxes_of({{2, 3, 20, 30, 0.5F, 0}, {1, 1, 9, 9, 0.4F, 0}}),
                    {1, 4, 8, 16, 32},
                    c10::kCPU,
                    0.01);
  ASSERT_EQ(batches.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(batches[i].is_out_of_memory);
    EXPECT_GT(batches[i].boxes_per_s, 0);
    EXPECT_GT(batches[i].memory, 0);
  }
  EXPECT_TRUE(batches[3].is_out_of_memory);
  const std::string table = format_batches(batches, c10::kCPU);
  EXPECT_NE(table.find("out of memory"), std::string::npos) << table;
  EXPECT_NE(table.find("optimal"), std::string::npos) << table;
  EXPECT_NE(table.find("cores"), std::string::npos) << table;
}

TEST(SegmentProfile, TheBestBatchIsTheSmallestThatIsFastEnough) {
  const auto batch = [](int64_t size, double rate) {
    BoxBatch one;
    one.size = size;
    one.boxes_per_s = rate;
    one.is_out_of_memory = rate == 0;
    return one;
  };
  EXPECT_EQ(
      best_batch({batch(4, 80), batch(16, 128), batch(32, 140.8), batch(64, 143.9), batch(128, 0)}),
      32);  // the example
  EXPECT_EQ(best_batch({batch(4, 0)}), -1);
  EXPECT_EQ(best_batch({}), -1);
}

TEST(SegmentProfile, SaysWhatARunIsBoundBy) {
  const auto bound = [](int load_ms, int compute_ms) {
    StageReport report("test");
    StageReport::Stage &load = report.add("load"), &compute = report.add("compute");
    {
      const StageWork work(load);
      std::this_thread::sleep_for(std::chrono::milliseconds(load_ms));
    }
    {
      const StageWork work(compute);
      std::this_thread::sleep_for(std::chrono::milliseconds(compute_ms));
    }
    return io_share(report);
  };
  EXPECT_EQ(bound(60, 5).verdict, "bound by reading and writing");
  EXPECT_EQ(bound(1, 100).verdict, "bound by computing");
}

}  // namespace
}  // namespace cytra::pipelines
