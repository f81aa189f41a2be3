#include "ops/dice_ce/dice_ce.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

using ops::ClassSums;

/// The same, composed, in float64.
ClassSums class_sums_by_hand(const at::Tensor& logits,
                             const at::Tensor& target,
                             const at::Tensor& mask,
                             bool is_exclusive,
                             bool squared) {
  const at::Tensor z = logits.to(at::kDouble), m = mask.to(at::kDouble);
  const at::Tensor numbers = at::arange(z.size(1)).view({-1, 1, 1}).to(at::kDouble);
  at::Tensor t = target.to(at::kDouble);
  at::Tensor p = at::sigmoid(z), ce = at::softplus(z) - z * t;
  if (is_exclusive) {
    t = z.dim() == 4 ? t.eq(numbers).to(at::kDouble) : t.eq(numbers.unsqueeze(-1)).to(at::kDouble);
    p = at::softmax(z, 1);
    ce = -at::log_softmax(z, 1) * t;
  }
  const auto sum = [&](const at::Tensor& values) { return (values * m).flatten(2).sum(2); };
  return {sum(p * t), sum(squared ? p * p : p), sum(squared ? t * t : t), sum(ce).sum(1)};
}

/// A scalar that depends on all of them.
at::Tensor mixed(const ClassSums& sums) {
  const auto weights = [](const at::Tensor& t) {
    return at::arange(1, t.numel() + 1, t.options().requires_grad(false)).view(t.sizes()) / 7;
  };
  return (sums.both / sums.truth.add(1) * weights(sums.both)).sum() +
         (sums.prediction * weights(sums.prediction)).sum() +
         (sums.cross_entropy * weights(sums.cross_entropy)).sum();
}

TEST(ClassSums, AndTheirGradientEqualTheFormulas) {
  at::manual_seed(0);
  struct Case {
    std::vector<int64_t> size;  // of the logits
    bool is_exclusive, squared, channels_last;
  };
  for (const Case& entry : {Case{{2, 1, 9, 7}, false, false, false},
                            Case{{2, 3, 30, 21}, false, true, true},
                            Case{{2, 4, 170, 130}, true, false, false},  // more than one chunk
                            Case{{3, 5, 17, 33}, true, true, true},
                            Case{{1, 2, 5, 6, 7}, true, false, true},
                            Case{{1, 2, 5, 6, 7}, false, true, false}}) {
    SCOPED_TRACE(entry.size.size() * 100 + static_cast<std::size_t>(entry.size[1]));
    at::Tensor logits = at::randn(entry.size) * 10;
    logits.view(-1)[0] = 90;  // no overflow
    logits.view(-1)[1] = -120;
    if (entry.channels_last)
      logits = logits.contiguous(entry.size.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                        : at::MemoryFormat::ChannelsLast3d);
    logits.requires_grad_(true);
    std::vector<int64_t> one = entry.size;
    one[1] = 1;
    const at::Tensor target =
        entry.is_exclusive ? at::randint(entry.size[1], one).to(at::kFloat) : at::rand(entry.size);
    const at::Tensor mask = at::rand(one).gt(0.2).to(at::kFloat);
    for (const at::Tensor& counts : {at::Tensor(), mask}) {
      ASSERT_TRUE(ops::has_class_sums(logits, target, counts));
      const at::Tensor all = counts.defined() ? counts : at::ones_like(mask);
      const auto [a, b] =
          std::pair{ops::class_sums(logits, target, counts, entry.is_exclusive, entry.squared),
                    class_sums_by_hand(logits, target, all, entry.is_exclusive, entry.squared)};
      EXPECT_LT(test::relative_difference(a.both, b.both), 1e-6);
      EXPECT_LT(test::relative_difference(a.prediction, b.prediction), 1e-6);
      EXPECT_LT(test::relative_difference(a.truth, b.truth), 1e-6);
      EXPECT_LT(test::relative_difference(a.cross_entropy, b.cross_entropy), 1e-6);
      const auto gradient = [&](const ClassSums& sums) {
        logits.mutable_grad().reset();
        mixed(sums).backward();
        return logits.grad().clone();
      };
      const at::Tensor grad = gradient(a), expected = gradient(b);
      EXPECT_EQ(grad.strides(), logits.strides());
      EXPECT_LT(test::relative_difference(grad, expected), 1e-6);
    }
  }
}

TEST(ClassSums, OfShortLogitsAreThoseOfTheSameFloats) {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const bool is_last : {false, true}) {
      for (const bool is_exclusive : {false, true}) {
        SCOPED_TRACE(testing::Message() << type << ' ' << is_last << ' ' << is_exclusive);
        const auto format = is_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
        const at::Tensor logits =
            (at::randn({2, 3, 37, 29}) * 10).to(type).contiguous(format).requires_grad_(true);
        const at::Tensor floats = logits.detach().to(at::kFloat).requires_grad_(true);
        const at::Tensor target =
            is_exclusive ? at::randint(3, {2, 1, 37, 29}).to(at::kFloat) : at::rand({2, 3, 37, 29});
        const at::Tensor mask = at::rand({2, 1, 37, 29}).gt(0.2).to(at::kFloat);
        ASSERT_TRUE(ops::has_class_sums(logits, target, mask));
        const ClassSums sums = ops::class_sums(logits, target, mask, is_exclusive, false),
                        expected = ops::class_sums(floats, target, mask, is_exclusive, false);
        EXPECT_TRUE(sums.both.equal(expected.both));
        EXPECT_TRUE(sums.prediction.equal(expected.prediction));
        EXPECT_TRUE(sums.cross_entropy.equal(expected.cross_entropy));
        mixed(sums).backward();
        mixed(expected).backward();
        EXPECT_EQ(logits.grad().strides(), logits.strides());
        EXPECT_TRUE(logits.grad().equal(floats.grad().to(type)));
      }
    }
  }
}

TEST(ClassSums, AreTheSameForAnyNumberOfThreads) {
  const at::Tensor logits = at::randn({1, 2, 300, 300}).requires_grad_(true);
  const at::Tensor target = at::randint(2, {1, 1, 300, 300}).to(at::kFloat);
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> grads;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    logits.mutable_grad().reset();
    mixed(ops::class_sums(logits, target, {}, true, false)).backward();
    grads.push_back(logits.grad().clone());
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(grads[0], grads[1]));
}

TEST(ClassSums, RefuseNumbersThatAreNoClass) {
  const at::Tensor logits = at::zeros({1, 2, 4, 4}), target = at::full({1, 1, 4, 4}, 2.0F);
  EXPECT_THROW(ops::class_sums(logits, target, {}, true, false), DataError);
  EXPECT_NO_THROW(ops::class_sums(logits, target, at::zeros_like(target), true, false));
}

TEST(ClassSums, HaveAKernelForFloatsOnACpuOnly) {
  const at::Tensor logits = at::zeros({1, 2, 4, 4}), target = at::zeros({1, 1, 4, 4});
  EXPECT_TRUE(ops::has_class_sums(logits, target, {}));
  EXPECT_FALSE(ops::has_class_sums(logits, target.to(at::kHalf), {}));
  EXPECT_FALSE(ops::has_class_sums(logits.to(at::kDouble), target, {}));
  EXPECT_FALSE(ops::has_class_sums(logits, target.to(at::kByte), {}));
  EXPECT_FALSE(ops::has_class_sums(logits.narrow(3, 0, 3), target.narrow(3, 0, 3), {}));
}

}  // namespace
}  // namespace cytra
