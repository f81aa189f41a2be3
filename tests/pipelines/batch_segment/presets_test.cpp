#include "pipelines/batch_segment/presets.h"

#include <gtest/gtest.h>

namespace cytra::pipelines {
namespace {

TEST(SegmentPresets, FollowTheDevice) {
  EXPECT_STREQ(preset_of_device("cuda:0 (Tesla T4)", 16e9).name, "t4");
  EXPECT_STREQ(preset_of_device("cuda:0 (NVIDIA A10G)", 24e9).name, "a10g");
  EXPECT_STREQ(preset_of_device("cuda:0 (NVIDIA A100-SXM4-80GB)", 80e9).name, "a100");
  EXPECT_STREQ(preset_of_device("cuda:0 (NVIDIA H200)", 139e9).name, "h200");
  EXPECT_STREQ(preset_of_device("cuda:0 (something new)", 24e9).name, "a10g");
  EXPECT_STREQ(preset_of_device("cpu (AMD EPYC, 2 threads)", 200e9).name, "cpu");
  EXPECT_EQ(segment_preset("a10g", c10::kCPU).image_batch_size("optimized"), 8);
  EXPECT_EQ(segment_preset("a10g", c10::kCPU).image_batch_size("parallel"), 16);
  EXPECT_GE(segment_preset("cpu", c10::kCPU).io_workers, 1);
}

TEST(SegmentPresets, TakeFewerBoxesWhereImagesHaveManyObjects) {
  const BoxBatchSizes boxes = segment_preset("a100", c10::kCPU).sam_batch_size;
  EXPECT_EQ(boxes.of(12), 128);
  EXPECT_EQ(boxes.of(15.5), 96);
  EXPECT_EQ(boxes.of(30), 96);
  EXPECT_EQ(boxes.of(31), 64);
}

}  // namespace
}  // namespace cytra::pipelines
