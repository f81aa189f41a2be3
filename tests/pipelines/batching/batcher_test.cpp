#include "pipelines/batching/batcher.h"

#include <atomic>
#include <future>
#include <random>

#include <gtest/gtest.h>

namespace cytra::pipelines {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Its images are numbers; a number's answer is twice that.
struct NumbersRequest final : BatchRequest {
  explicit NumbersRequest(std::vector<int64_t> numbers) : input(std::move(numbers)) {
    images = static_cast<int64_t>(input.size());
    bytes = 8 * images;
    output.resize(input.size());
  }
  void succeed() override { promise.set_value(output); }
  void fail(std::exception_ptr error) override { promise.set_exception(error); }
  const std::vector<int64_t> input;
  std::vector<int64_t> output;
  std::promise<std::vector<int64_t>> promise;
};

void double_numbers(const Batch& batch) {
  for (const BatchSlice& slice : batch.slices) {
    auto& request = static_cast<NumbersRequest&>(*slice.request);
    for (int64_t i = slice.begin; i < slice.begin + slice.count; ++i) {
      const auto place = static_cast<std::size_t>(i);
      request.output[place] = 2 * request.input[place];
    }
  }
}

/// A model that waits until it may go on.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void wait_for_one_inside() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_open_ = false;
};

std::shared_ptr<NumbersRequest> numbers_request(std::vector<int64_t> input) {
  return std::make_shared<NumbersRequest>(std::move(input));
}

Outcome outcome_of(NumbersRequest& request) {
  try {
    request.promise.get_future().get();
    return Outcome::ok;
  } catch (const RequestError& error) {
    return error.outcome;
  } catch (const std::exception&) {
    return Outcome::failed;
  }
}

int64_t sum_of(const BatchingFigures& figures) {
  int64_t sum = figures.open;
  for (const auto& [outcome, count] : figures.outcomes) sum += count;
  return sum;
}

TEST(Batcher, HundredThousandRequestsOf64ThreadsLoseAndSwapNothing) {
  BatchingOptions options;
  options.max_queue_size = 200;
  options.max_queue_bytes = 20000;
  options.waits_for_room = false;
  Batcher batcher(options, [](const Batch& batch) {
    ASSERT_LE(batch.images, 32);
    double_numbers(batch);
    if (batch.images % 17 == 13) throw std::runtime_error("a bad batch");
  });
  constexpr int64_t kThreads = 64, kEach = 1600;  // 102 400
  std::atomic<int64_t> wrong{0};
  std::map<Outcome, int64_t> seen;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      std::map<Outcome, int64_t> own;
      std::vector<std::shared_ptr<NumbersRequest>> open;
      const auto look = [&] {
        for (const auto& request : open) {
          std::future<std::vector<int64_t>> answer = request->promise.get_future();
          try {
            const std::vector<int64_t> got = answer.get();
            own[Outcome::ok] += 1;
            for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != 2 * request->input[i];
          } catch (const RequestError& error) {
            own[error.outcome] += 1;
          } catch (const std::runtime_error&) {
            own[Outcome::failed] += 1;
          }
        }
        open.clear();
      };
      for (int64_t i = 0; i < kEach; ++i) {
        const int64_t size = random() % 20 == 0 ? 33 + random() % 64 : 1 + random() % 4;
        std::vector<int64_t> input;
        for (int64_t k = 0; k < size; ++k) input.push_back(((t * kEach + i) << 8) + k);
        auto request = numbers_request(std::move(input));
        request->bucket = std::to_string(random() % 3);
        if (random() % 4 == 0)
          request->deadline = BatchClock::now() + microseconds(random() % 5000);
        try {
          batcher.submit(request);
          open.push_back(request);
        } catch (const RequestError& error) {
          own[error.outcome] += 1;
        }
        if (!open.empty() && random() % 8 == 0) batcher.cancel(open[random() % open.size()]);
        if (open.size() >= 8) look();
      }
      look();
      const std::lock_guard lock(mutex);
      for (const auto& [outcome, count] : own) seen[outcome] += count;
    });
  }
  for (int i = 0; i < 100; ++i) {  // at any time
    const BatchingFigures figures = batcher.figures();
    ASSERT_EQ(figures.received, sum_of(figures));
    std::this_thread::sleep_for(milliseconds(1));
  }
  for (std::thread& thread : threads) thread.join();
  batcher.drain();
  const BatchingFigures figures = batcher.figures();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(figures.received, kThreads * kEach);
  EXPECT_EQ(figures.open, 0);
  EXPECT_EQ(figures.received, sum_of(figures));
  for (const Outcome outcome :
       {Outcome::ok, Outcome::rejected, Outcome::timed_out, Outcome::cancelled, Outcome::failed}) {
    EXPECT_EQ(figures.of(outcome), seen[outcome]) << name_of(outcome);
    EXPECT_GT(figures.of(outcome), 0) << name_of(outcome);
  }
  EXPECT_EQ(figures.total_s.count(), figures.of(Outcome::ok));
}

TEST(Batcher, ABatchGrowsWhileTheModelIsBusy) {
  Gate gate;
  Batcher batcher({}, [&](const Batch& batch) {
    gate.pass();
    double_numbers(batch);
  });
  std::vector<std::shared_ptr<NumbersRequest>> requests{numbers_request({1})};
  batcher.submit(requests[0]);
  gate.wait_for_one_inside();
  for (int64_t i = 0; i < 40; ++i) {
    requests.push_back(numbers_request({i}));
    batcher.submit(requests.back());
  }
  gate.open();
  batcher.drain();
  for (const auto& request : requests)
    EXPECT_EQ(request->promise.get_future().get().at(0), 2 * request->input[0]);
  EXPECT_EQ(batcher.figures().batches, (std::map<int64_t, int64_t>{{1, 1}, {8, 1}, {32, 1}}));
}

TEST(Batcher, ADeadlineIsToldWhileTheModelComputes) {
  Gate gate;
  Batcher batcher({}, [&](const Batch& batch) {
    gate.pass();
    double_numbers(batch);
  });
  const auto computed = numbers_request({1}), waiting = numbers_request({2}),
             patient = numbers_request({3});
  computed->deadline = BatchClock::now() + milliseconds(200);
  batcher.submit(computed);
  gate.wait_for_one_inside();
  waiting->deadline = BatchClock::now() + milliseconds(100);
  batcher.submit(waiting);
  batcher.submit(patient);
  EXPECT_EQ(outcome_of(*waiting), Outcome::timed_out);  // the gate is shut all the time
  EXPECT_EQ(outcome_of(*computed), Outcome::timed_out);
  const auto late = numbers_request({4});
  late->deadline = BatchClock::now() - milliseconds(1);
  EXPECT_THROW(batcher.submit(late), RequestError);
  gate.open();
  EXPECT_EQ(outcome_of(*patient), Outcome::ok);
  EXPECT_EQ(batcher.figures().of(Outcome::timed_out), 3);
  EXPECT_FALSE(batcher.cancel(patient));
}

TEST(Batcher, AnErrorReachesTheRequestsOfItsBatchAlone) {
  Gate gate;
  Batcher batcher({}, [&](const Batch& batch) {
    gate.pass();
    if (batch.bucket == "bad") throw std::invalid_argument("such images I do not take");
    double_numbers(batch);
  });
  const auto first = numbers_request({1}), bad = numbers_request({2}), worse = numbers_request({3}),
             good = numbers_request({4});
  bad->bucket = worse->bucket = "bad";
  batcher.submit(first);
  gate.wait_for_one_inside();
  for (const auto& request : {bad, worse, good}) batcher.submit(request);
  gate.open();
  EXPECT_EQ(outcome_of(*first), Outcome::ok);
  EXPECT_THROW(bad->promise.get_future().get(), std::invalid_argument);
  EXPECT_THROW(worse->promise.get_future().get(), std::invalid_argument);
  EXPECT_EQ(outcome_of(*good), Outcome::ok);
  EXPECT_EQ(batcher.figures().of(Outcome::failed), 2);
}

TEST(Batcher, NoRoomRejectsOrWaits) {
  for (const bool waits : {false, true}) {
    BatchingOptions options;
    options.max_queue_size = 1;
    options.max_queue_bytes = 80;
    options.waits_for_room = waits;
    Gate gate;
    Batcher batcher(options, [&](const Batch& batch) {
      gate.pass();
      double_numbers(batch);
    });
    const auto first = numbers_request({1}), second = numbers_request({2}),
               third = numbers_request({3});
    batcher.submit(first);
    gate.wait_for_one_inside();
    batcher.submit(second);
    const auto huge = numbers_request(std::vector<int64_t>(11));
    EXPECT_THROW(batcher.submit(huge), RequestError);  // it never has room
    if (waits) {
      const auto hurried = numbers_request({5});
      hurried->deadline = BatchClock::now() + milliseconds(5);
      EXPECT_THROW(batcher.submit(hurried), RequestError);
      std::thread opener([&] { gate.open(); });
      batcher.submit(third);
      opener.join();
      EXPECT_EQ(outcome_of(*third), Outcome::ok);
    } else {
      try {
        batcher.submit(third);
        ADD_FAILURE();
      } catch (const RequestError& error) {
        EXPECT_EQ(error.outcome, Outcome::rejected);
        EXPECT_NE(std::string(error.what()).find("1 requests wait, at most 1"), std::string::npos);
      }
      gate.open();
    }
    EXPECT_EQ(outcome_of(*second), Outcome::ok);
  }
}

TEST(Batcher, StopCancelsWhatWaitsAndDrainAnswersIt) {
  for (const bool drains : {false, true}) {
    Gate gate;
    Batcher batcher({}, [&](const Batch& batch) {
      gate.pass();
      double_numbers(batch);
    });
    const auto first = numbers_request({1}), second = numbers_request({2});
    batcher.submit(first);
    gate.wait_for_one_inside();
    batcher.submit(second);
    std::thread ender([&] { drains ? batcher.drain() : batcher.stop(); });
    if (!drains) {
      EXPECT_EQ(outcome_of(*second), Outcome::cancelled);
    }
    gate.open();
    ender.join();
    EXPECT_EQ(outcome_of(*first), Outcome::ok);
    if (drains) {
      EXPECT_EQ(outcome_of(*second), Outcome::ok);
    }
    const auto late = numbers_request({3});
    EXPECT_THROW(batcher.submit(late), RequestError);
    EXPECT_THROW(batcher.run_between([] {}), RequestError);
    EXPECT_EQ(batcher.figures().of(Outcome::rejected), 1);
  }
}

TEST(Batcher, WorkBetweenBatchesRunsInTheModelsThread) {
  std::thread::id of_model, of_work;
  Batcher batcher({}, [&](const Batch& batch) {
    of_model = std::this_thread::get_id();
    double_numbers(batch);
  });
  batcher.run_between([&] { of_work = std::this_thread::get_id(); });
  EXPECT_THROW(batcher.run_between([] { throw std::domain_error("x"); }), std::domain_error);
  const auto request = numbers_request({1});
  batcher.submit(request);
  EXPECT_EQ(outcome_of(*request), Outcome::ok);
  EXPECT_EQ(of_model, of_work);
  EXPECT_NE(of_model, std::this_thread::get_id());
}

TEST(BatchingFigures, ArePrometheusText) {
  BatchingFigures figures;
  figures.received = 5;
  figures.outcomes[Outcome::ok] = 5;
  figures.batches = {{1, 2}, {3, 1}};
  figures.total_s.add(0.25);
  const std::string text = figures.prometheus();
  for (const char* line : {"cytra_requests_received_total 5\n",
                           "cytra_requests_total{outcome=\"ok\"} 5\n",
                           "cytra_requests_total{outcome=\"cancelled\"} 0\n",
                           "# TYPE cytra_batch_size histogram\n",
                           "cytra_batch_size_bucket{le=\"1\"} 2\n"
                           "cytra_batch_size_bucket{le=\"2\"} 2\n"
                           "cytra_batch_size_bucket{le=\"4\"} 3\n"
                           "cytra_batch_size_bucket{le=\"+Inf\"} 3\n",
                           "cytra_batch_size_sum 5\n",
                           "cytra_request_seconds_count 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_DOUBLE_EQ(figures.mean_batch(), 5.0 / 3);
}

}  // namespace
}  // namespace cytra::pipelines
