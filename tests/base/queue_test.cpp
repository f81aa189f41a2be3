#include "base/queue.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cytra {
namespace {

void wait_a_moment() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

TEST(Queue, KeepsTheOrderAndEnds) {
  Queue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(queue.push(i));
    queue.close();
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_FALSE(queue.push(1));
  producer.join();
}

TEST(Queue, WaitsWhileTheBytesAreTaken) {
  Queue<int> queue(100, 10);
  std::atomic<int> pushed{0};
  std::thread producer([&] {
    for (const int64_t bytes : {6, 4, 1, 50, 1}) {
      ASSERT_TRUE(queue.push(static_cast<int>(bytes), bytes));
      ++pushed;
    }
  });
  wait_a_moment();
  EXPECT_EQ(pushed, 2);
  EXPECT_EQ(queue.pop(), 6);
  wait_a_moment();
  EXPECT_EQ(pushed, 3) << "50 passes alone";
  EXPECT_EQ(queue.pop(), 4);
  EXPECT_EQ(queue.pop(), 1);
  wait_a_moment();
  EXPECT_EQ(pushed, 4);
  EXPECT_EQ(queue.pop(), 50);
  EXPECT_EQ(queue.pop(), 1);
  producer.join();
}

TEST(Queue, DropsTheOldestWhereAskedTo) {
  Queue<int> queue(2, 10);
  std::vector<std::pair<int, int>> heirs;
  const auto note = [&](int dropped, int next) { heirs.emplace_back(dropped, next); };
  EXPECT_EQ(queue.push_over(1, 1, note), 0);
  EXPECT_EQ(queue.push_over(2, 1, note), 0);
  EXPECT_EQ(queue.push_over(3, 1, note), 1) << "two items fit";
  EXPECT_EQ(queue.push_over(4, 10, note), 2) << "ten bytes fit";
  EXPECT_EQ(heirs, (std::vector<std::pair<int, int>>{{1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(queue.pop(), 4);
}

TEST(Queue, CarriesAnErrorToBothEnds) {
  Queue<int> queue(1);
  ASSERT_TRUE(queue.push(1));
  std::thread producer([&] { EXPECT_THROW(queue.push(2), std::runtime_error); });
  wait_a_moment();
  queue.fail(std::make_exception_ptr(std::runtime_error("the disk")));
  producer.join();
  EXPECT_THROW(queue.pop(), std::runtime_error);
}

}  // namespace
}  // namespace cytra
