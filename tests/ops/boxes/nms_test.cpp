#include "ops/boxes/nms.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace cytra::ops {
namespace {

TEST(Nms, EqualsTorchvision) {
  const test::Golden golden("detection");
  const auto& pairs = golden.at("iou");
  EXPECT_LT(test::max_difference(box_iou(pairs.tensor("boxes"), pairs.tensor("others")),
                                 pairs.tensor("iou")),
            1e-6);
  for (const char* name : {"nms.0.2", "nms.0.5"}) {
    const auto& entry = golden.at(name);
    const at::Tensor kept = nms(entry.tensor("boxes"),
                                entry.tensor("scores"),
                                entry.tensor("labels"),
                                entry.options().get<double>("threshold"));
    EXPECT_TRUE(at::equal(kept, entry.tensor("kept"))) << name << kept << entry.tensor("kept");
  }
}

TEST(Nms, NothingStaysNothing) {
  const at::Tensor none = at::zeros({0, 4});
  EXPECT_EQ(nms(none, at::zeros({0}), at::zeros({0}, at::kLong), 0.5).numel(), 0);
  EXPECT_EQ(box_iou(at::zeros({1, 4}), at::zeros({2, 4})).sum().item<float>(), 0);
}

}  // namespace
}  // namespace cytra::ops
