#include "inference/windows/window_plan.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/memory.h"
#include "inference/windows/slabs.h"
#include "ops/windows/sums.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using Sizes = std::vector<int64_t>;
constexpr int64_t kGB = 1'000'000'000;

/// Windows of 64 that grow, for a model of 1 kB a voxel that takes multiples of 16.
inference::WindowPlanner planner() {
  inference::WindowPlanner planner;
  planner.options.roi_size = {64, 64};
  planner.options.sw_batch_size = 4;
  planner.grows = true;
  planner.cost = {1000, 1};
  planner.divisor = {16, 16};
  return planner;
}

inference::SlidingWindowOptions plan(const inference::WindowPlanner& planner,
                                     const Sizes& size,
                                     int64_t bytes = 100 * kGB) {
  return planner.plan("a.tif", size, 0, {bytes, "the machine"});
}

TEST(WindowPlanner, TakesTwiceTheTrainingPatch) {
  EXPECT_EQ(plan(planner(), {1000, 700}).roi_size, (Sizes{128, 128}));
  EXPECT_EQ(plan(planner(), {1000, 700}).sw_batch_size, 4);
}

TEST(WindowPlanner, FollowsAnImageThatIsSmaller) {
  EXPECT_EQ(plan(planner(), {1000, 100}).roi_size, (Sizes{128, 112}));
  EXPECT_EQ(plan(planner(), {30, 16}).roi_size, (Sizes{32, 16}));
  EXPECT_EQ(plan(planner(), {1, 1}).roi_size, (Sizes{16, 16}));
  inference::WindowPlanner of_planes = planner();
  of_planes.options.spatial_dim = 1;
  EXPECT_EQ(plan(of_planes, {1000, 5, 100}).roi_size, (Sizes{128, 112}));
  of_planes.options.roi_size = {48};
  EXPECT_EQ(plan(of_planes, {30, 5, 1000}).roi_size, (Sizes{32, 96}));
}

TEST(WindowPlanner, KeepsWhatWasGiven) {
  inference::WindowPlanner given = planner();
  given.grows = false;
  EXPECT_EQ(plan(given, {1000, 30}).roi_size, (Sizes{64, 64}));
  given.options.roi_size = {0, 32};
  EXPECT_EQ(plan(given, {1000, 30}).roi_size, (Sizes{1000, 32}));
  given.options.roi_size = {48};  // one for all
  EXPECT_EQ(plan(given, {1000, 30}).roi_size, (Sizes{48, 48}));
}

TEST(WindowPlanner, FillsABudget) {
  const Sizes size{1000, 1000};  // as below: 8 MB, and 4 MB for each window of 64 x 64
  inference::WindowPlanner filling = planner();
  filling.fills = true;
  EXPECT_EQ(plan(filling, size).sw_batch_size, 64);
  EXPECT_EQ(plan(filling, size).roi_size, (Sizes{128, 128}));
  filling.grows = false;
  EXPECT_EQ(plan(filling, size, 42'000'000).sw_batch_size, 8);
  EXPECT_EQ(plan(filling, size, 26'000'000).sw_batch_size, 4);
  EXPECT_THROW(plan(filling, size, 11'000'000), MemoryError);
}

TEST(WindowPlanner, TakesWhatMemoryAllows) {
  // The image itself takes 8 bytes a voxel: 8 MB. A window of 128 x 128: 16 MB; of 64 x 64: 4 MB.
  const Sizes size{1000, 1000};
  EXPECT_EQ(plan(planner(), size, 2 * 74'000'000).sw_batch_size, 4);
  const auto one_by_one = plan(planner(), size, 2 * 30'000'000);
  EXPECT_EQ(one_by_one.roi_size, (Sizes{128, 128}));
  EXPECT_EQ(one_by_one.sw_batch_size, 1);
  const auto small = plan(planner(), size, 26'000'000);
  EXPECT_EQ(small.roi_size, (Sizes{64, 64}));
  EXPECT_EQ(small.sw_batch_size, 4);
  EXPECT_EQ(plan(planner(), size, 20'000'000).sw_batch_size, 2);
  inference::WindowPlanner given = planner();
  given.grows = false;
  given.options.sw_batch_size = 1000;  // of 256 windows
  EXPECT_EQ(plan(given, size, 26'000'000).sw_batch_size, 4);
  const std::string message = message_of<MemoryError>([&] { plan(planner(), size, 11'000'000); });
  for (const char* part : {"a.tif: 1000x1000 voxels",
                           "windows of 64x64",
                           "11.0 MB are left (the machine)",
                           "inference_args.roi_size"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

TEST(WindowPlanner, KeepsSumsInAFileWhereTheyDoNotFit) {
  ops::Finish mask;
  mask.kind = ops::Finish::Kind::argmax;
  mask.type = at::kByte;
  inference::WindowPlanner slabs = planner();
  slabs.by_slabs = &mask;
  slabs.cost.out_channels = 50;
  const Sizes size{1000, 1000};
  const auto within = [&](int64_t bytes, const std::string& folder) {
    return slabs.plan("a.tif", size, 0, {bytes, "the machine"}, folder);
  };
  // 64 rows of sums: 12.8 MB; a window of 64 x 64: 4 MB; rows of the image: 0.5 MB.
  EXPECT_EQ(within(20'000'000, "somewhere").slab_folder, "");
  const auto in_file = within(6'000'000, "somewhere");
  EXPECT_EQ(in_file.slab_folder, "somewhere");
  EXPECT_EQ(in_file.sw_batch_size, 1);
  EXPECT_TRUE(is_memory_spared());
  EXPECT_THROW(within(6'000'000, ""), MemoryError);
  EXPECT_THROW(within(3'000'000, "somewhere"), MemoryError);
}

TEST(WindowPlanner, LeavesRoomForLibrariesWhereALimitEndsTheProgram) {
  const Sizes size{1000, 1000};
  const auto within = [&](int64_t bytes, bool is_hard) {
    return planner().plan("a.tif", size, 0, {bytes, "the container's limit", is_hard});
  };
  EXPECT_EQ(within(26'000'000, false).sw_batch_size, 4);
  EXPECT_EQ(within(26'000'000, true).sw_batch_size, 2);
  EXPECT_EQ(within(20'000'000, true).sw_batch_size, 1) << "made smaller, not refused";
  EXPECT_EQ(within(16'100'000, false).sw_batch_size, 1);
  EXPECT_THROW(within(16'100'000, true), MemoryError);
}

TEST(WindowPlanner, CountsWhatElseIsHeldAndTheClasses) {
  inference::WindowPlanner given = planner();
  given.cost.out_channels = 10;  // 44 bytes a voxel, and 16 MB of windows
  EXPECT_EQ(plan(given, {1000, 1000}, 61'000'000).sw_batch_size, 4);
  EXPECT_EQ(plan(given, {1000, 1000}, 59'000'000).sw_batch_size, 2);
  EXPECT_EQ(given.plan("a.tif", {1000, 1000}, 2'000'000, {61'000'000, "the machine"}).sw_batch_size,
            2);
  EXPECT_THROW(plan(given, {1000, 1000}, 40'000'000), MemoryError);
}

TEST(ModelCost, IsThatOfThePass) {
  const auto model = [](const at::Tensor& x) {
    const at::Tensor wide = x.expand({1, 8, 32, 32}).contiguous();  // 32 bytes a voxel
    const at::Tensor other = wide + 1;                              // 32 more
    return other.narrow(1, 0, 3) + 1;                               // 12 more
  };
  const inference::ModelCost cost = inference::measure_cost(model, at::zeros({1, 1, 32, 32}));
  EXPECT_EQ(cost.out_channels, 3);
  EXPECT_NEAR(cost.bytes_per_voxel, 32 + 32 + 12 + 4, 1);
}

TEST(WindowMemory, IsWhatPredictingTakes) {
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 24};
  const auto model = [](const at::Tensor& x) {
    return std::vector<at::Tensor>{x.expand({-1, 5, -1, -1}).contiguous()};
  };
  const inference::ModelCost cost{4 + 20, 5};
  const ops::Finish finish{ops::Finish::Kind::argmax, 0.5, at::kByte};
  double flat = 0;
  for (const int64_t height : {200, 400}) {
    const inference::WindowMemory plan =
        inference::memory_of({height, 300}, 1, options, cost, finish);
    EXPECT_EQ(plan.rows, 16);
    EXPECT_EQ(plan.windows, static_cast<int64_t>(std::ceil((height - 16) / 12.) + 1) * 17);
    EXPECT_DOUBLE_EQ(plan.in_memory, height * 300. * (4 + 20 + 1));
    const at::Tensor image = at::rand({1, height, 300});
    const auto counter = std::make_shared<test::AllocationCounter>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
      inference::predict_slabs(
          {image.sizes().vec(),
           [&](int64_t first, int64_t count) { return image.narrow(1, first, count).clone(); }},
          model,
          options,
          finish,
          [](int64_t, const std::vector<at::Tensor>&) {});
    }
    EXPECT_NEAR(static_cast<double>(counter->peak) / plan.by_slabs, 1, 0.05);
    EXPECT_TRUE(flat == 0 || flat == plan.by_slabs);
    flat = plan.by_slabs;
  }
}

TEST(FreeMemory, OfTheMachineIsKnown) {
  EXPECT_GT(inference::free_memory_on(c10::kCPU).bytes, 1'000'000);
}

}  // namespace
}  // namespace cytra
