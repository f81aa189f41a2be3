#include "app/serve/http/request_progress.h"

#include <gtest/gtest.h>

#include "app/serve/http/http.h"

namespace cytra::app {
namespace {

int status_of_find(const ProgressBoard& board, const std::string& id) {
  try {
    board.find(id);
    return 200;
  } catch (const HttpError& error) {
    return error.status;
  }
}

TEST(RequestProgress, NeverFallsAndEndsAtItsTotal) {
  ProgressBoard board;
  const auto progress = board.add("one");
  progress->expect(3);
  EXPECT_EQ(board.find("one").total, 0);
  int64_t counted[3] = {};
  const auto add = [&](int image, int64_t done, int64_t total) {
    progress->add(counted[image], done, total);
    return board.find("one").done;
  };
  EXPECT_EQ(add(0, 6, 8), 6);
  EXPECT_EQ(board.find("one").total, 24);
  EXPECT_EQ(add(0, 2, 8), 6);  // computed again, by itself
  EXPECT_EQ(add(0, 8, 8), 8);
  EXPECT_EQ(add(1, 3, 4), 14);  // in windows of another size: they count as many
  EXPECT_EQ(add(1, 4, 4), 16);
  EXPECT_EQ(add(2, 29, 30), 23);
  EXPECT_EQ(add(2, 30, 30), 24);
}

TEST(RequestProgress, ForgetsTheIdOfARequestThatHasEnded) {
  ProgressBoard board;
  const auto progress = board.add("one");
  EXPECT_THROW(board.add("one"), HttpError);
  EXPECT_EQ(status_of_find(board, "one"), 200);
  progress->end();
  EXPECT_EQ(status_of_find(board, "one"), 404);
  EXPECT_NO_THROW(board.add("one"));
  for (const std::string& id : {std::string(), std::string("a/b"), std::string(65, 'a')})
    EXPECT_EQ(status_of_find(board, id), 400);
}

}  // namespace
}  // namespace cytra::app
