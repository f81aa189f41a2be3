#include "tasks/instances/labels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra::tasks {
namespace {

/// `count` squares, of the numbers that `number(i)` gives.
template <class Number>
at::Tensor squares(int64_t count, const Number& number) {
  at::Tensor labels = at::zeros({1, 8, 4 * count});
  for (int64_t i = 0; i < count; ++i)
    labels.slice(1, 2, 5).slice(2, 4 * i, 4 * i + 3).fill_(static_cast<double>(number(i)));
  return labels;
}

TEST(InstanceLabels, AMaskOfManyPiecesIsDoubted) {
  const auto always = [](int64_t) { return 255; };
  EXPECT_EQ(pieces_of_mask(squares(6, always)), 6);
  EXPECT_EQ(pieces_of_mask(squares(6, always).to(at::kBool)), 6);
  EXPECT_EQ(pieces_of_mask(squares(2, always)), 0);  // a crop may have cut it
  EXPECT_EQ(pieces_of_mask(squares(6, [](int64_t i) { return i + 1; })), 0);
  EXPECT_EQ(pieces_of_mask(at::zeros({1, 8, 8})), 0);
  EXPECT_EQ(pieces_of_mask(at::zeros({1, 0, 8})), 0);
  EXPECT_EQ(pieces_of_mask(squares(6, always).unsqueeze(1)), 6);  // a volume
}

}  // namespace
}  // namespace cytra::tasks
