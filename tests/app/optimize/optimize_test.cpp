// The verdict of `optimize --detect-bottlenecks`, from times that are made up.
#include <gtest/gtest.h>

#include "app/optimize/bottleneck.h"

namespace cytra {
namespace {

using app::Bound;
using app::Facts;
using app::StepTimes;

/// 100 batches of 4 images, 10 s of computing.
StepTimes computing() {
  StepTimes times;
  times.batches = 100;
  times.images = 400;
  times.compute_s = times.wall_s = 10;
  return times;
}

/// Of a machine with 8 cores, where nothing is left to change but how to compute.
Facts tuned() {
  Facts facts;
  facts.cores = facts.threads = 8;
  facts.batch_size = 4;
  facts.num_workers = 8;
  facts.images = 1000;
  facts.miss_share = 0;
  facts.free_gb = 32;
  facts.ram_cache_gb = 2;
  facts.log_every_n_steps = 50;
  return facts;
}

/// The value that the first advice gives a key; "" where that is about others.
std::string first_change(const StepTimes& times, const Facts& facts, const std::string& key) {
  const std::vector<app::Advice> advice = app::advise(times, facts);
  for (const auto& [name, value] : advice.at(0).changes) {
    if (name == key) return config::to_json(value);
  }
  return "";
}

TEST(Optimize, ComputingAloneIsComputeBound) {
  const StepTimes times = computing();
  const app::Shares shares = times.shares();
  EXPECT_DOUBLE_EQ(shares.compute, 1);
  EXPECT_EQ(shares.bound(), Bound::compute);
  EXPECT_DOUBLE_EQ(times.rate(), 40);
  EXPECT_EQ(first_change(times, tuned(), "model.channels_last"), "true");
}

TEST(Optimize, SharesAddUpAndTheBoundIsTheLargestOfWhatCanBeAvoided) {
  StepTimes times = computing();
  times.data_s = 3;
  times.transfer_s = 1;
  times.sync_s = 1;
  times.callbacks_s = {{"saving", 1}, {"gradients", 2}};
  times.fixed_s = 1;
  times.anomaly_s = 2;
  times.wall_s = 20;  // 2 s are the loop's own
  const app::Shares shares = times.shares();
  EXPECT_DOUBLE_EQ(shares.data, 0.15);
  EXPECT_DOUBLE_EQ(shares.transfer, 0.05);
  EXPECT_DOUBLE_EQ(shares.sync, 0.3);
  EXPECT_DOUBLE_EQ(shares.launch, 0.15);
  EXPECT_DOUBLE_EQ(shares.compute, 0.35);
  EXPECT_EQ(shares.bound(), Bound::sync);
  EXPECT_DOUBLE_EQ(shares.of(Bound::sync), 0.3);
}

TEST(Optimize, EachBoundHasItsName) {
  EXPECT_STREQ(app::name_of(app::Shares{0.5, 0, 0, 0.1, 0.4}.bound()), "data-bound");
  EXPECT_STREQ(app::name_of(app::Shares{0.1, 0.3, 0, 0, 0.6}.bound()), "transfer-bound");
  EXPECT_STREQ(app::name_of(app::Shares{0, 0, 0.25, 0.2, 0.55}.bound()), "sync-bound");
  EXPECT_STREQ(app::name_of(app::Shares{0, 0, 0.2, 0.3, 0.5}.bound()), "launch-bound");
  EXPECT_STREQ(app::name_of(app::Shares{0.1, 0.1, 0.1, 0.1, 0.6}.bound()), "compute-bound");
}

TEST(Optimize, NoTimeIsNoVerdictOfNan) {
  const app::Shares shares = StepTimes{}.shares();
  EXPECT_EQ(shares.data, 0);
  EXPECT_EQ(shares.bound(), Bound::compute);
  EXPECT_EQ(StepTimes{}.rate(), 0);
}

/// 100 ms of loading and 100 ms of computing a batch, one after the other.
StepTimes waiting() {
  StepTimes times = computing();
  times.data_s = 10;
  times.wall_s = 20;
  return times;
}
Facts slow_loader() {
  Facts facts = tuned();
  facts.is_on_gpu = true;  // which leaves the cores to the loader
  facts.num_workers = 0;
  facts.transforms = {{"LoadImaged", 0.005, 0.005, true}, {"Rand2DElasticd", 0.02, 0.02, false}};
  return facts;
}

TEST(Optimize, ASlowLoaderGetsWorkers) {
  EXPECT_EQ(waiting().shares().bound(), Bound::data);
  EXPECT_EQ(first_change(waiting(), slow_loader(), "data.num_workers"), "8");
}

TEST(Optimize, WorkersThatTakeTheCoresOfComputingAreDataToo) {
  Facts facts = slow_loader();
  facts.is_on_gpu = false;
  facts.cores = facts.threads = facts.num_workers = 2;
  StepTimes times = computing();  // nothing waits, but 100 * 4 * 20 ms of 2 * 10 s are the workers'
  app::share_cores(facts, times);
  EXPECT_DOUBLE_EQ(times.loader_s, 4);
  EXPECT_EQ(times.shares().bound(), Bound::data);
  EXPECT_DOUBLE_EQ(times.shares().compute, 0.6);

  facts.cores = 8;  // enough for both
  times = computing();
  app::share_cores(facts, times);
  EXPECT_EQ(times.loader_s, 0);
}

TEST(Optimize, LargeImagesAreKeptOrReadInPart) {
  Facts facts = slow_loader();
  facts.num_workers = facts.cores = 2;
  facts.transforms = {{"LoadImaged", 0.2, 0.2, true}, {"RandSpatialCropd", 0.001, 0.001, false}};
  facts.miss_share = 1;
  facts.ram_cache_gb = 0;
  facts.kept_bytes = 5e6;  // of each of 1000 images: 5.5 GB
  EXPECT_EQ(first_change(waiting(), facts, "data.ram_cache_gb"), "6");
  facts.free_gb = 8;
  EXPECT_EQ(first_change(waiting(), facts, "data.ram_cache_gb"), "") << "half of memory is left";
  facts.lazy_key = "data.transforms.train.0.lazy";
  EXPECT_EQ(first_change(waiting(), facts, facts.lazy_key), "true");
  facts.miss_share = 0;
  EXPECT_EQ(first_change(waiting(), facts, facts.lazy_key), "") << "they are read once";
}

TEST(Optimize, ACallbackLooksLessOftenOrIsSwitchedOff) {
  StepTimes times = computing();
  times.callbacks_s = {{"gradients", 10}};
  times.wall_s = 20;
  EXPECT_EQ(first_change(times, tuned(), "callbacks.gradients"), "null");
  Facts facts = tuned();
  facts.callback_intervals = {{"gradients", {{"every_n_steps", 1}}}};
  EXPECT_EQ(first_change(times, facts, "callbacks.gradients.every_n_steps"), "50");
  facts.callback_intervals = {{"gradients", {{"every_n_steps", 50}}}};
  EXPECT_EQ(first_change(times, facts, "callbacks.gradients.every_n_steps"), "");
}

TEST(Optimize, ALookForNansIsSwitchedOff) {
  StepTimes times = computing();
  times.anomaly_s = 5;
  Facts facts = tuned();
  facts.detects_anomaly = true;
  EXPECT_EQ(times.shares().bound(), Bound::sync);
  EXPECT_EQ(first_change(times, facts, "trainer.detect_anomaly"), "false");
}

TEST(Optimize, TheLongestCallbackComesFirst) {
  StepTimes times = computing();
  times.callbacks_s = {{"a", 2}, {"b", 6}, {"c", 0.1}};
  times.wall_s = 20;
  const std::vector<app::Advice> advice = app::advise(times, tuned());
  ASSERT_EQ(advice.size(), 2U) << "c takes next to nothing";
  EXPECT_EQ(advice[0].changes.at(0).first, "callbacks.b");
  EXPECT_EQ(advice[1].changes.at(0).first, "callbacks.a");
}

TEST(Optimize, TheSecondShareIsAdvisedOnToo) {
  StepTimes times = computing();
  times.callbacks_s = {{"a", 6}};
  times.fixed_s = 8;
  times.wall_s = 20;
  Facts facts = tuned();
  facts.best_batch_size = 64;
  const std::vector<app::Advice> advice = app::advise(times, facts);
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(advice[0].changes.at(0).first, "data.batch_size");
  EXPECT_EQ(advice[1].changes.at(0).first, "callbacks.a");
}

TEST(Optimize, ATinyBatchGrows) {
  StepTimes times = computing();
  times.fixed_s = 9;
  EXPECT_EQ(times.shares().bound(), Bound::launch);
  Facts facts = tuned();
  facts.best_batch_size = 64;
  EXPECT_EQ(first_change(times, facts, "data.batch_size"), "64");
  facts.best_batch_size = facts.batch_size;
  EXPECT_EQ(first_change(times, facts, "data.batch_size"), "");
  facts.log_every_n_steps = 10;
  EXPECT_EQ(first_change(times, facts, "trainer.log_every_n_steps"), "50");
}

TEST(Optimize, AGpuThatWaitsForLaunchesGetsRecordedSteps) {
  StepTimes times = computing();
  times.wall_s = 20;
  Facts facts = tuned();
  facts.is_on_gpu = true;
  EXPECT_EQ(times.shares().bound(), Bound::launch);
  EXPECT_EQ(first_change(times, facts, "model.compile_model"), "true");
  facts.compiles = true;
  EXPECT_EQ(first_change(times, facts, "model.compile_model"), "");
}

TEST(Optimize, MemoryThatIsNotPageLockedIsOnAGpu) {
  StepTimes times = computing();
  times.transfer_s = 5;
  times.wall_s = 15;
  Facts facts = tuned();
  facts.is_on_gpu = true;
  facts.pins_memory = false;
  EXPECT_EQ(times.shares().bound(), Bound::transfer);
  EXPECT_EQ(first_change(times, facts, "data.pin_memory"), "true");
}

}  // namespace
}  // namespace cytra
