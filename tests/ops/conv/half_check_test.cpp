#include "ops/conv/half_check.h"

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
    EXPECT_FALSE(is_right_in_half(tensors, {++key}, one)) << name;
  }
  for (const auto& right : {+[](const Tensors& t) { return t[0] * 3; },
                            +[](const Tensors& t) {
                              return t[1].sum({2, 3});
                            }})
    EXPECT_TRUE(is_right_in_half(tensors, {++key}, right));
}

TEST(HalfCheck, TriesEachFormOnce) {
  int runs = 0;
  const auto compute = [&](const Tensors& t) {
    EXPECT_TRUE(t[0].isfinite().all().item<bool>());
    ++runs;
    return t[0] * 2;
  };
  const auto is_right = [&](const at::Tensor& x, int64_t key) {
    return is_right_in_half({x, like({4, 3, 3, 3})}, {2000, key}, compute);
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_right(like({2, 3, 5, 7}), 0));
    EXPECT_EQ(runs, 2) << "in float32 and in bfloat16";
  }
  is_right(like({2, 3, 7, 5}), 0);
  is_right(like({2, 3, 5, 7}).contiguous(), 0);
  is_right(like({2, 3, 5, 7}), 1);
  EXPECT_EQ(runs, 8) << "other sizes, strides and options";
}

}  // namespace
}  // namespace cytra::ops::cpu
