#include "ops/norm/synced_batch_norm.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "ops/norm/norm.h"

namespace cytra::ops {
namespace {

/// Threads that stand for processes: sum() waits for all of them.
class Threads {
 public:
  explicit Threads(std::size_t count) : count_(count) {}
  void sum(const at::Tensor& values) {
    std::unique_lock<std::mutex> lock(mutex_);
    total_ = arrived_ == 0 ? values.clone() : total_ + values;
    const std::size_t turn = turn_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      ++turn_;
      result_ = total_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return turn_ != turn; });
    }
    values.copy_(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_, arrived_ = 0, turn_ = 0;
  at::Tensor total_, result_;
};

struct NormOfABatch {
  at::Tensor y, dx, dweight, dbias, mean, variance;
};

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.clone().requires_grad_(true) : tensor;
}

class SyncedBatchNormTest : public testing::TestWithParam<bool> {};

TEST_P(SyncedBatchNormTest, PartsGiveWhatTheWholeBatchGives) {
  const bool is_affine = GetParam();
  at::manual_seed(1);
  const at::Tensor x = at::randn({5, 3, 6, 7}) * 2 + 30, grad = at::randn({5, 3, 6, 7});
  const at::Tensor weight = is_affine ? at::rand({3}) + 0.5 : at::Tensor(),
                   bias = is_affine ? at::randn({3}) : at::Tensor();
  const Activation leaky{Activation::kLeakyRelu, 0.1};
  // Of float64 tensors ATen's batch norm is the reference.
  const auto as_double = [](const at::Tensor& t) { return t.defined() ? t.to(at::kDouble) : t; };
  const at::Tensor whole = leaf_of(as_double(x)), w = leaf_of(as_double(weight)),
                   b = leaf_of(as_double(bias));
  const at::Tensor mean = at::zeros({3}, at::kDouble), variance = at::ones({3}, at::kDouble);
  const at::Tensor expected =
      at::leaky_relu(at::batch_norm(whole, w, b, mean, variance, true, 0.1, 1e-5, false), 0.1);
  expected.backward(as_double(grad));

  const std::vector<std::pair<int64_t, int64_t>> parts{{0, 4}, {4, 1}};  // uneven
  Threads together(parts.size());
  std::vector<NormOfABatch> found(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto [begin, count] = parts[i];
      const at::Tensor own = leaf_of(x.narrow(0, begin, count)), own_weight = leaf_of(weight),
                       own_bias = leaf_of(bias);
      const RunningStatistics running{at::zeros({3}), at::ones({3}), 0.1};
      const at::Tensor y = synced_batch_norm(
          own,
          own_weight,
          own_bias,
          running,
          1e-5,
          [&](const at::Tensor& t) { together.sum(t); },
          leaky);
      y.backward(grad.narrow(0, begin, count));
      const auto grad_of = [](const at::Tensor& t) { return t.defined() ? t.grad() : t; };
      found[i] = {y.detach(),
                  own.grad(),
                  grad_of(own_weight),
                  grad_of(own_bias),
                  running.mean,
                  running.variance};
    });
  }
  for (std::thread& thread : threads) thread.join();

  const auto difference = [](const at::Tensor& one, const at::Tensor& other) {
    return (one.to(at::kDouble) - other).abs().max().item<double>();
  };
  EXPECT_LT(difference(at::cat({found[0].y, found[1].y}), expected.detach()), 2e-5);
  EXPECT_LT(difference(at::cat({found[0].dx, found[1].dx}), whole.grad()), 2e-5);
  if (is_affine) {
    EXPECT_LT(difference(found[0].dweight + found[1].dweight, w.grad()), 1e-4);
    EXPECT_LT(difference(found[0].dbias + found[1].dbias, b.grad()), 1e-4);
  }
  for (const NormOfABatch& one : found) {
    EXPECT_LT(difference(one.mean, mean), 1e-5);
    EXPECT_LT(difference(one.variance, variance), 1e-5);
  }
}
INSTANTIATE_TEST_SUITE_P(Affine, SyncedBatchNormTest, testing::Bool());

}  // namespace
}  // namespace cytra::ops
