#include "pipelines/batching/batching_service.h"

#include <atomic>
#include <random>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace cytra::pipelines {
namespace {

at::Tensor twice(const at::Tensor& images) {
  return images * 2;
}

TEST(BatchingService, AnswersEachRequestByItsOwnImages) {
  BatchingOptions options;
  options.max_batch_size = 4;
  BatchingService service(
      [](const at::Tensor& images) {
        EXPECT_LE(images.size(0), 4);
        EXPECT_FALSE(at::GradMode::is_enabled());
        return images.mean({2, 3}) + 1;  // (n,C)
      },
      options);
  std::vector<BatchingService::Request> requests;
  for (int64_t i = 0; i < 20; ++i)  // one to ten images: some are more than a batch
    requests.push_back(service.submit(
        at::arange(1.0 + i % 10).view({-1, 1, 1, 1}).expand({-1, 2, 3, 3}) + 100 * i));
  for (int64_t i = 0; i < 20; ++i) {
    const at::Tensor answer = requests[static_cast<std::size_t>(i)].answer.get();
    EXPECT_TRUE(answer.equal(
        (at::arange(1 + i % 10).view({-1, 1}).expand({-1, 2}) + 100 * i + 1).to(answer.dtype())))
        << answer;
  }
}

TEST(BatchingService, PadsToAMultipleAndCropsTheAnswer) {
  BatchingOptions options;
  options.pad_to = 8;
  std::mutex mutex;
  std::vector<std::vector<int64_t>> shapes;
  BatchingService service(
      [&](const at::Tensor& images) {
        const std::lock_guard lock(mutex);
        shapes.push_back(images.sizes().slice(1).vec());
        return images * 2;
      },
      options);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 1, 5, 9}, {1, 1, 8, 16}, {1, 3, 2, 7, 8}}) {
    const at::Tensor input = at::rand(shape);
    EXPECT_TRUE(service.submit(input).answer.get().equal(input * 2));
  }
  EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{{1, 8, 16}, {1, 8, 16}, {3, 8, 8, 8}}));
  const BatchingFigures figures = service.figures();
  EXPECT_EQ(figures.values, 2 * 128 + 128 + 3 * 512);
  EXPECT_EQ(figures.padded_values, 2 * (128 - 45) + 3 * (512 - 112));
  // An answer that can't be cropped.
  BatchingService halves([](const at::Tensor& images) { return images.slice(2, 0, 4); }, options);
  EXPECT_THROW(halves.submit(at::rand({1, 1, 5, 8})).answer.get(), DataError);
  EXPECT_EQ(halves.submit(at::rand({1, 1, 8, 8})).answer.get().size(2), 4);
}

TEST(BatchingService, WarmsUpEachSizeAndTakesTheBest) {
  BatchingOptions options;
  options.max_batch_size = 6;
  std::vector<int64_t> sizes;
  BatchingService service(
      [&](const at::Tensor& images) {
        sizes.push_back(images.size(0));
        // Up to four images cost the same: six cost twice as much.
        std::this_thread::sleep_for(std::chrono::milliseconds(images.size(0) <= 4 ? 10 : 60));
        return images;
      },
      options);
  EXPECT_EQ(service.full_size({1, 4, 4}), 6);
  const std::map<int64_t, double> seconds = service.warm_up({1, 4, 4});
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 1, 1, 2, 2, 2, 4, 4, 4, 6, 6, 6}));
  EXPECT_EQ(seconds.size(), 4U);
  EXPECT_EQ(service.full_size({1, 4, 4}), 4);
  EXPECT_EQ(service.full_size({1, 4, 5}), 6);
  sizes.clear();
  service.submit(at::zeros({9, 1, 4, 4})).answer.get();
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 1}));
  EXPECT_THROW(BatchingService([](const at::Tensor&) -> at::Tensor {
                 throw DataError("no");
               }).warm_up({1, 4, 4}),
               DataError);
}

TEST(BatchingService, SaysWhatIsWrong) {
  BatchingService service([](const at::Tensor& images) { return images.slice(0, 1); });
  EXPECT_THROW(service.submit(at::zeros({3, 4, 4})), DataError);
  EXPECT_THROW(service.submit(at::zeros({0, 1, 4, 4})), DataError);
  EXPECT_THROW(service.submit(at::Tensor()), DataError);
  EXPECT_EQ(service.figures().received, 0);
  try {
    service.submit(at::zeros({1, 1, 4, 4})).answer.get();
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "the model answers 1 images by (0,1,4,4), expected one answer for each");
  }
  BatchingOptions options;
  options.max_batch_size = 0;
  EXPECT_THROW(BatchingService(twice, options), ConfigError);
}

TEST(BatchingService, CancelsAndTimesOutWhileTheModelComputes) {
  std::promise<void> inside, open;
  std::atomic<bool> is_first{true};
  BatchingService service([&](const at::Tensor& images) {
    if (is_first.exchange(false)) {
      inside.set_value();
      open.get_future().wait();
    }
    return images;
  });
  const at::Tensor image = at::zeros({1, 1, 2, 2});
  auto computed = service.submit(image);
  inside.get_future().wait();
  auto waiting = service.submit(image);
  auto late = service.submit(image, BatchClock::now() + std::chrono::milliseconds(50));
  EXPECT_TRUE(computed.cancel());
  EXPECT_FALSE(computed.cancel());
  EXPECT_THROW(computed.answer.get(), RequestError);
  EXPECT_THROW(late.answer.get(), RequestError);
  open.set_value();
  EXPECT_EQ(waiting.answer.get().numel(), 4);
  EXPECT_FALSE(waiting.cancel());
  service.drain();
  const BatchingFigures figures = service.figures();
  EXPECT_EQ(figures.of(Outcome::cancelled), 1);
  EXPECT_EQ(figures.of(Outcome::timed_out), 1);
  EXPECT_EQ(figures.of(Outcome::ok), 1);
  EXPECT_THROW(service.submit(image), RequestError);
}

TEST(BatchingService, HundredThousandRequestsOf64ThreadsGetTheirOwnAnswers) {
  BatchingOptions options;
  options.max_queue_size = 100;
  options.waits_for_room = true;
  BatchingService service(twice, options);
  constexpr int64_t kThreads = 64, kEach = 1563;
  std::atomic<int64_t> ok{0}, wrong{0}, other{0};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int64_t i = 0; i < kEach; ++i) {
        const auto images = static_cast<int64_t>(random() % 30 == 0 ? 40 : 1 + random() % 3);
        const auto side = static_cast<int64_t>(1 + random() % 2);
        const double id = static_cast<double>(t * kEach + i);
        const at::Tensor input = at::full({images, 1, side, side}, id, at::kDouble);
        const BatchTime deadline =
            random() % 8 == 0 ? BatchClock::now() + std::chrono::microseconds(random() % 3000)
                              : kNoDeadline;
        try {
          auto request = service.submit(input, deadline);
          if (random() % 8 == 0) request.cancel();
          const at::Tensor answer = request.answer.get();
          const auto* values = answer.const_data_ptr<double>();
          bool is_right = answer.size(0) == images && answer.numel() == input.numel();
          for (int64_t k = 0; is_right && k < answer.numel(); ++k) is_right = values[k] == 2 * id;
          ok += 1;
          wrong += !is_right;
        } catch (const RequestError&) {
          other += 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  service.drain();
  const BatchingFigures figures = service.figures();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ok + other, kThreads * kEach);
  EXPECT_EQ(figures.received, kThreads * kEach);
  EXPECT_EQ(figures.open, 0);
  EXPECT_EQ(figures.of(Outcome::ok), ok);
  EXPECT_EQ(figures.of(Outcome::cancelled) + figures.of(Outcome::timed_out), other);
  EXPECT_GT(figures.of(Outcome::cancelled), 0);
  EXPECT_GT(figures.of(Outcome::timed_out), 0);
}

TEST(BatchingService, ItsModelMayStopIt) {  // its thread waited for itself for ever
  for (const bool is_draining : {false, true}) {
    BatchingService* self = nullptr;
    BatchingService service([&](const at::Tensor& images) {
      EXPECT_THROW(self->warm_up({1, 2, 2}), std::logic_error);
      is_draining ? self->drain() : self->stop();
      return images + 1;
    });
    self = &service;
    EXPECT_TRUE(service.submit(at::zeros({1, 1, 2, 2})).answer.get().equal(at::ones({1, 1, 2, 2})));
    EXPECT_THROW(service.submit(at::zeros({1, 1, 2, 2})), RequestError);
    service.stop();
  }
}

TEST(BatchingService, WarmsUpForImagesAlone) {
  BatchingService service(twice);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {1}, {8, 8}, {1, 0, 8}, {1, -1, 8}, {1, 1, 1, 8, 8}})
    EXPECT_THROW(service.warm_up(shape), DataError) << at::IntArrayRef(shape);
  EXPECT_FALSE(service.warm_up({1, 8, 8}).empty());
}

TEST(BatchingService, ACallerMayChangeItsTensorAtOnce) {
  BatchingOptions options;
  options.max_batch_size = 2;
  std::promise<void> changed;
  BatchingService service(
      [&, ready = changed.get_future().share()](const at::Tensor& images) {
        ready.wait();
        return twice(images);
      },
      options);
  at::Tensor image = at::ones({3, 1, 2, 2});  // of two batches, the second of two requests
  const at::Tensor expected = twice(image.clone());
  auto first = service.submit(image), second = service.submit(image.narrow(0, 0, 1));
  image.zero_();
  changed.set_value();
  EXPECT_TRUE(first.answer.get().equal(expected));
  EXPECT_TRUE(second.answer.get().equal(expected.narrow(0, 0, 1)));
}

TEST(BatchingService, AModelThatWorksInPlaceLeavesTheCallersTensor) {
  BatchingOptions options;
  options.max_batch_size = 2;
  options.pad_to = 4;
  BatchingService service([](const at::Tensor& images) { return at::Tensor(images).mul_(2); },
                          options);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{1, 1, 4, 4}, {1, 1, 3, 3}, {5, 1, 4, 4}}) {
    const at::Tensor input = at::rand(shape), before = input.clone();
    EXPECT_TRUE(service.submit(input).answer.get().equal(before * 2));
    EXPECT_TRUE(input.equal(before)) << at::IntArrayRef(shape);
  }
}

}  // namespace
}  // namespace cytra::pipelines
