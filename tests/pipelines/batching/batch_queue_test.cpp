#include "pipelines/batching/batch_queue.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cytra::pipelines {
namespace {

using std::chrono::milliseconds;

struct SilentRequest final : BatchRequest {
  void succeed() override {}
  void fail(std::exception_ptr) override {}
};

/// A queue with a clock of its own.
class QueueAt {
 public:
  explicit QueueAt(const BatchingOptions& options = {}) : queue(options) {}
  std::shared_ptr<SilentRequest> add(int64_t images = 1,
                                     const std::string& bucket = "a",
                                     int64_t bytes = 1) {
    auto request = std::make_shared<SilentRequest>();
    request->images = images;
    request->bucket = bucket;
    request->bytes = bytes;
    queue.add(request, now);
    return request;
  }
  /// Images of the batch that is closed now; 0: none.
  int64_t take() {
    const BatchQueue::Next next = queue.next(now);
    wake_ms = next.wake == kNoDeadline
                  ? -1
                  : std::chrono::duration<double, std::milli>(next.wake - now).count();
    if (next.batch) last = *next.batch;
    return next.batch ? next.batch->images : 0;
  }
  BatchTime now{std::chrono::hours(1)};
  double wake_ms = 0;
  Batch last;  // that was taken
  BatchQueue queue;
};

BatchingOptions batches_of(int64_t images, double latency = 0.1) {
  BatchingOptions options;
  options.max_batch_size = images;
  options.max_latency = latency;
  return options;
}

TEST(BatchQueue, AnIdleModelTakesWhatIsThereAndNeverMoreThanABatch) {
  QueueAt at(batches_of(4));
  EXPECT_EQ(at.take(), 0);
  EXPECT_EQ(at.wake_ms, -1);
  at.add();
  EXPECT_EQ(at.take(), 1);  // nothing is known of its cost: at once
  for (int i = 0; i < 6; ++i) at.add();
  EXPECT_EQ(at.take(), 4);
  EXPECT_EQ(at.take(), 2);
  EXPECT_TRUE(at.queue.is_empty());
}

TEST(BatchQueue, RequestsKeepTheirOrderAndAreSplitOnlyWhereTheyAreLarger) {
  QueueAt at(batches_of(4));
  at.add(3);
  at.add(2);   // does not fit behind 3
  at.add(10);  // 4 + 4 + 2
  at.add(1);
  std::vector<int64_t> sizes;
  while (const int64_t images = at.take()) sizes.push_back(images);
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 2, 4, 4, 3}));
  EXPECT_EQ(at.last.slices.size(), 2U);
  EXPECT_EQ(at.last.slices[0].begin, 8);
  EXPECT_EQ(at.last.slices[0].count, 2);
}

TEST(BatchQueue, ShapesDoNotMixAndTheOldestGoesFirst) {
  QueueAt at(batches_of(8));
  at.add(1, "b");
  at.now += milliseconds(1);
  at.add(1, "a");
  at.add(1, "a");
  at.now += milliseconds(1);
  at.add(1, "b");
  EXPECT_EQ(at.take(), 2);
  EXPECT_EQ(at.last.bucket, "b");
  EXPECT_EQ(at.take(), 2);
  EXPECT_EQ(at.last.bucket, "a");
}

/// Requests have come every `gap` so far, the last one at `now`, and none waits.
QueueAt steady(BatchingOptions options, milliseconds gap, std::map<int64_t, double> seconds) {
  QueueAt at(options);
  for (int i = 0; i < 40; ++i) {
    at.now += gap;
    at.add();
    EXPECT_EQ(at.take(), 1);
  }
  for (const auto& [size, time] : seconds) at.queue.record("a", size, time);
  return at;
}

TEST(BatchQueue, WaitsForTheNextRequestWhereThatPays) {
  // 50 ms for one or two images: the one that comes 2 ms later would wait for 48 ms.
  QueueAt at = steady(batches_of(2), milliseconds(2), {{1, 0.05}, {2, 0.05}});
  at.now += milliseconds(2);
  at.add();
  EXPECT_EQ(at.take(), 0);
  EXPECT_NEAR(at.wake_ms, 2, 0.01);
  at.now += milliseconds(2);
  at.add();
  EXPECT_EQ(at.take(), 2);
  // It does not come: no more waiting.
  at.now += milliseconds(2);
  at.add();
  EXPECT_EQ(at.take(), 0);
  at.now += milliseconds(2);
  EXPECT_EQ(at.take(), 1);
}

TEST(BatchQueue, DoesNotWaitWhereALargerBatchTakesAsMuchMore) {
  QueueAt at = steady(batches_of(2), milliseconds(2), {{1, 0.05}, {2, 0.1}});
  at.now += milliseconds(2);
  at.add();
  EXPECT_EQ(at.take(), 1);
}

TEST(BatchQueue, DoesNotWaitForRequestsThatAreRare) {
  QueueAt at = steady(batches_of(2), milliseconds(500), {{1, 0.05}, {2, 0.05}});
  at.now += milliseconds(500);
  at.add();
  EXPECT_EQ(at.take(), 1);
}

TEST(BatchQueue, ClosesByWhatComputingWillTakeBeforeTheLatencyOrTheDeadline) {
  // A batch of two takes 50 ms of a latency of 51 ms: 1 ms is left to wait.
  QueueAt at = steady(batches_of(2, 0.051), milliseconds(2), {{1, 0.05}, {2, 0.05}});
  at.now += milliseconds(2);
  at.add();
  EXPECT_EQ(at.take(), 0);
  EXPECT_NEAR(at.wake_ms, 1, 0.01);
  at.now += milliseconds(1);
  EXPECT_EQ(at.take(), 1);
  // None is left before this one's own deadline.
  QueueAt hurried = steady(batches_of(2), milliseconds(2), {{1, 0.05}, {2, 0.05}});
  hurried.now += milliseconds(2);
  hurried.add()->deadline = hurried.now + milliseconds(50);
  EXPECT_EQ(hurried.take(), 1);
}

TEST(BatchQueue, ClosesAtOnceWhenNoMoreCome) {
  QueueAt at = steady(batches_of(2), milliseconds(2), {{1, 0.05}, {2, 0.05}});
  at.now += milliseconds(2);
  at.add();
  EXPECT_TRUE(at.queue.next(at.now, false).batch);
}

TEST(BatchQueue, IsBoundedByRequestsAndByBytes) {
  BatchingOptions options;
  options.max_queue_size = 2;
  options.max_queue_bytes = 100;
  QueueAt at(options);
  SilentRequest next;
  next.bytes = 60;
  at.add(1, "a", 50);
  EXPECT_NE(at.queue.what_is_full(next).find("max_queue_bytes"), std::string::npos);
  EXPECT_FALSE(at.queue.is_too_large(next));
  next.bytes = 50;
  EXPECT_EQ(at.queue.what_is_full(next), "");
  const auto second = at.add(1, "a", 10);
  EXPECT_NE(at.queue.what_is_full(next).find("max_queue_size"), std::string::npos);
  at.queue.remove(*second);
  EXPECT_EQ(at.queue.what_is_full(next), "");
  EXPECT_EQ(at.take(), 1);
  next.bytes = 100;
  EXPECT_EQ(at.queue.what_is_full(next), "");  // bytes of what was taken are free
  next.bytes = 101;
  EXPECT_TRUE(at.queue.is_too_large(next));
}

TEST(BatchQueue, ARemovedRequestIsInNoBatch) {
  QueueAt at(batches_of(4));
  const auto first = at.add(2), second = at.add(10);
  EXPECT_EQ(at.take(), 2);
  EXPECT_EQ(at.take(), 4);
  at.queue.remove(*second);  // with six images that were not computed
  at.queue.remove(*second);
  EXPECT_EQ(at.take(), 0);
  EXPECT_TRUE(at.queue.is_empty());
}

TEST(BatchQueue, WarmingSetsTheSizeOfABatch) {
  QueueAt at(batches_of(8));
  at.queue.warm("a", {{1, 0.01}, {2, 0.011}, {4, 0.0215}, {8, 0.08}});  // 2: as fast as 4
  EXPECT_EQ(at.queue.full_size("a"), 2);
  EXPECT_EQ(at.queue.full_size("b"), 8);
  at.add(5);
  std::vector<int64_t> sizes;
  while (const int64_t images = at.take()) sizes.push_back(images);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 1}));
}

TEST(BatchCosts, GoesBetweenWhatIsKnown) {
  BatchCosts costs;
  EXPECT_EQ(costs.expected(4), 0);
  costs.record(2, 0.1);
  EXPECT_DOUBLE_EQ(costs.expected(1), 0.1);
  EXPECT_DOUBLE_EQ(costs.expected(4), 0.2);
  costs.record(6, 0.2);
  EXPECT_DOUBLE_EQ(costs.expected(4), 0.15);
  costs.record(6, 0.3);
  EXPECT_NEAR(costs.expected(6), 0.22, 1e-12);
}

TEST(BatchHistogram, QuantilesAreExactToABin) {
  BatchHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  for (int i = 1; i <= 1000; ++i) histogram.add(1e-3 * i);
  EXPECT_NEAR(histogram.quantile(0.5) / 0.5, 1, 0.023);
  EXPECT_NEAR(histogram.quantile(0.99) / 0.99, 1, 0.023);
  EXPECT_NEAR(histogram.sum(), 500.5, 1e-9);
}

}  // namespace
}  // namespace cytra::pipelines
