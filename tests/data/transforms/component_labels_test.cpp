// ComponentLabelsd: values by skimage.measure.label(image, connectivity=2), value by value.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/data/make_transform.h"

namespace cytra {
namespace {

at::Tensor labels_of(const std::string& values, const at::Tensor& image) {
  data::Sample sample;
  sample.tensors["seg"] = image;
  Rng rng(0);
  make_transform("{_target_: ComponentLabelsd, keys: seg, values: " + values + "}")
      ->apply(sample, rng);
  return sample.at("seg").to(at::kInt);
}

const at::Tensor kMask = at::tensor({255., 255., 0.,   7.,   0.,    //
                                     0.,   0.,   255., 0.,   0.,    //
                                     0.,   0.,   0.,   0.,   255.,  //
                                     7.,   7.,   0.,   255., 0.})
                             .to(at::kFloat)
                             .view({1, 4, 5});

TEST(ComponentLabelsd, NumbersEachRegionOfItsValues) {
  const at::Tensor one = at::tensor({1, 1, 0, 0, 0,  //
                                     0, 0, 1, 0, 0,  //
                                     0, 0, 0, 0, 2,  //
                                     0, 0, 0, 2, 0})
                             .to(at::kInt)
                             .view({1, 4, 5});
  EXPECT_TRUE(labels_of("[255]", kMask).equal(one)) << labels_of("[255]", kMask);
  EXPECT_TRUE(labels_of("[255]", kMask.to(at::kByte)).equal(one));
  EXPECT_TRUE(labels_of("[255]", kMask.expand({3, 4, 5})).equal(one)) << "grey in three channels";
  EXPECT_TRUE(labels_of("[255]", kMask.unsqueeze(1)).equal(one.unsqueeze(1))) << "a volume";
  EXPECT_EQ(labels_of("[3]", kMask).max().item<int>(), 0);
}

TEST(ComponentLabelsd, ValuesThatTouchStayApart) {
  EXPECT_TRUE(labels_of("[255, 7]", kMask)
                  .equal(at::tensor({1, 1, 0, 2, 0,  //
                                     0, 0, 1, 0, 0,  //
                                     0, 0, 0, 0, 3,  //
                                     4, 4, 0, 3, 0})
                             .to(at::kInt)
                             .view({1, 4, 5})));
}

TEST(ComponentLabelsd, RefusesChannelsThatDiffer) {
  const at::Tensor two = at::cat({kMask, kMask.eq(0).to(at::kFloat)});
  EXPECT_THROW(labels_of("[255]", two), DataError);
  EXPECT_THROW(labels_of("[]", kMask), ConfigError);
}

}  // namespace
}  // namespace cytra
