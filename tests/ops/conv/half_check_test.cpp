#include "ops/conv/half_check.h"

#include <cmath>
#include <map>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra::ops::cpu {
namespace {

using Tensors = std::vector<at::Tensor>;

/// What a convolution that is right in float32 does wrong in half precision.
const std::map<std::string, std::function<at::Tensor(const Tensors&)>> kWrong{
    {"uses memory that nothing was written to",
     [](const Tensors& t) { return t[0] + 0 * at::empty({1}, t[0].options()); }},
    {"leaves a column of its result",
     [](const Tensors& t) {
       at::Tensor y = at::empty_like(t[0]);
       y.slice(-1, 0, -1).copy_(t[0].slice(-1, 0, -1));
       return y;
     }},
    {"reads beyond its image",
     [](const Tensors& t) {
       return t[0] + 0 * static_cast<float>(t[0].const_data_ptr<at::BFloat16>()[t[0].numel()]);
     }},
    {"reads before its weight",
     [](const Tensors& t) {
       return t[0] + 0 * static_cast<float>(t[1].const_data_ptr<at::BFloat16>()[-1]);
     }},
    {"sums in 16 bits", [](const Tensors& t) { return t[0] * 1.05; }},
    {"gives zeros", [](const Tensors& t) { return at::zeros_like(t[0]); }},
};

at::Tensor like(at::IntArrayRef sizes) {
  return at::empty(sizes,
                   at::TensorOptions(at::kBFloat16).memory_format(at::MemoryFormat::ChannelsLast));
}

TEST(HalfCheck, FindsWhatIsWrongInHalfPrecision) {
  const Tensors tensors{like({2, 3, 5, 7}), like({4, 3, 3, 3})};
  int64_t key = 1000;
  for (const auto& [name, compute] : kWrong) {
    const auto one = [&compute = compute](const Tensors& t) {
      return t[0].scalar_type() == at::kFloat ? t[0] * 1 : compute(t);
    };
    EXPECT_FALSE(is_right_in_half(tensors, {++key}, {one})) << name;
  }
  EXPECT_TRUE(is_right_in_half(tensors, {++key}, {[](const Tensors& t) { return t[0] * 3; }}));
  const auto sum = [](const Tensors& t) { return t[0].sum(0); };
  EXPECT_TRUE(is_right_in_half(tensors, {++key}, {sum, 1, true}));
  const auto of_one_image = [](const Tensors& t) { return t[0][0] * 1; };
  EXPECT_FALSE(is_right_in_half(tensors, {++key}, {of_one_image, 1, true}));
}

TEST(HalfCheck, FindsWhatIsWrongInOneImage) {
  for (const int64_t wrong : {0, 1, 2}) {
    const auto compute = [&](const Tensors& t) {
      at::Tensor y = t[0] * 2;
      if (y.scalar_type() == at::kBFloat16) y[wrong][0][1][2].fill_(NAN);
      return y;
    };
    EXPECT_FALSE(is_right_in_half({like({3, 1, 5, 7})}, {3000, wrong}, {compute})) << wrong;
  }
}

// It is tried where a training's memory is highest.
TEST(HalfCheck, ComputesFloat32ImageByImage) {
  const Tensors tensors{like({3, 8, 5, 7}), like({3, 4, 5, 7}).zero_(), like({4, 8, 3, 3})};
  const auto compute = [&](const Tensors& t) {
    if (t[0].scalar_type() == at::kFloat) {
      EXPECT_EQ(t[0].size(0), 1);
      EXPECT_EQ(t[1].size(0), 1);
      EXPECT_EQ(t[2].size(0), 4);
    } else {
      EXPECT_TRUE(t[1].is_same(tensors[1])) << "its values are not read";
    }
    return t[0] * 2;
  };
  EXPECT_TRUE(is_right_in_half(tensors, {4000}, {compute, 2, false, 1}));
}

TEST(HalfCheck, TriesEachFormOnce) {
  int runs = 0;
  const auto compute = [&](const Tensors& t) {
    EXPECT_TRUE(t[0].isfinite().all().item<bool>());
    ++runs;
    return t[0] * 2;
  };
  const auto is_right = [&](const at::Tensor& x, int64_t key) {
    return is_right_in_half({x, like({4, 3, 3, 3})}, {2000, key}, {compute});
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_right(like({2, 3, 5, 7}), 0));
    EXPECT_EQ(runs, 3) << "in bfloat16, and each image in float32";
  }
  is_right(like({2, 3, 7, 5}), 0);
  is_right(like({2, 3, 5, 7}).contiguous(), 0);
  is_right(like({2, 3, 5, 7}), 1);
  EXPECT_EQ(runs, 12) << "other sizes, strides and options";
}

}  // namespace
}  // namespace cytra::ops::cpu
