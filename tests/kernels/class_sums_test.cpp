// The CUDA kernels of Dice and cross-entropy, on a CPU, against float64 by ATen.
#include "ops/cuda/class_sums.cu"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/kernels/room.h"

namespace cytra::ops::gpu {
namespace {

struct ClassCase {
  std::vector<int64_t> shape;
  bool is_exclusive, squared, has_mask, is_channels_last;
};

/// both, prediction, truth (N,K) and cross-entropy (N).
std::vector<at::Tensor> sums_in_float64(const at::Tensor& logits,
                                        const at::Tensor& target,
                                        const at::Tensor& mask,
                                        const ClassCase& of) {
  const int64_t classes = logits.size(1);
  at::Tensor truth = target.to(at::kDouble), log_p, entropy;
  at::Tensor p;
  if (of.is_exclusive) {
    const at::Tensor valid = target.clamp(0, static_cast<double>(classes - 1)).to(at::kLong);
    truth = at::zeros(logits.sizes(), at::kDouble).scatter_(1, valid, 1);
    p = logits.softmax(1);
    entropy = -(logits.log_softmax(1) * truth).sum(1, true);
  } else {
    p = logits.sigmoid();
    entropy =
        -(truth * at::log_sigmoid(logits) + (1 - truth) * at::log_sigmoid(-logits)).sum(1, true);
  }
  const at::Tensor counts = mask.to(at::kDouble);
  p = p * counts;
  truth = truth * counts;
  const auto sum = [](const at::Tensor& t) { return t.flatten(2).sum(2); };
  return {sum(p * truth),
          sum(of.squared ? p * p : p),
          sum(of.squared ? truth * truth : truth),
          (entropy * counts).flatten(1).sum(1)};
}

class ClassKernels : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ClassKernels, EqualFloat64) {
  const at::ScalarType type = GetParam();
  const ClassCase cases[] = {
      {{2, 3, 7, 5}, true, false, false, false},
      {{1, 4, 50, 61}, true, true, true, true},  // two blocks, the second not whole
      {{2, 2, 3, 4, 5}, true, false, true, true},
      {{3, 1, 46, 45}, false, false, false, false},
      {{2, 3, 9, 8}, false, true, true, true},
      {{1, 1, 1, 1}, false, false, false, false},
      {{1, 17, 5, 3}, true, false, false, false},
  };
  for (const ClassCase& of : cases) {
    SCOPED_TRACE(testing::Message() << at::IntArrayRef(of.shape) << type << of.is_exclusive);
    at::manual_seed(2);
    at::Tensor logits = (at::randn(of.shape) * 4).to(type);
    if (of.is_channels_last)
      logits = logits.contiguous(logits.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                                   : at::MemoryFormat::ChannelsLast3d);
    const int64_t images = of.shape[0], classes = of.shape[1];
    std::vector<int64_t> line = of.shape;
    line[1] = 1;
    const at::Tensor target = of.is_exclusive
                                  ? at::randint(classes, line).to(at::kFloat)
                                  : at::randint(2, of.shape).to(at::kFloat).contiguous();
    const at::Tensor mask = of.has_mask ? at::randint(2, line).to(at::kFloat) : at::ones(line);
    if (of.is_exclusive && of.has_mask) target.masked_fill_(mask == 0, -1);  // do not count
    const int64_t voxels = logits.numel() / (images * classes);
    const int64_t blocks = (voxels + kClassBlock - 1) / kClassBlock;
    const CudaClasses task{0,
                           type,
                           images,
                           classes,
                           voxels,
                           !logits.is_contiguous(),
                           of.is_exclusive,
                           of.squared,
                           logits.const_data_ptr(),
                           target.const_data_ptr<float>(),
                           of.has_mask ? mask.const_data_ptr<float>() : nullptr};
    const auto room = test::room_for<double>(images * blocks * (3 * classes + 1));
    const auto both = test::room_for<float>(images * classes),
               prediction = test::room_for<float>(images * classes),
               truth = test::room_for<float>(images * classes),
               entropy = test::room_for<float>(images);
    cytra_cuda_class_sums(
        {task, room.get(), both.get(), prediction.get(), truth.get(), entropy.get()});

    const at::Tensor leaf = logits.to(at::kDouble).contiguous().requires_grad_(true);
    const std::vector<at::Tensor> wanted = sums_in_float64(leaf, target, mask, of);
    const std::vector<at::Tensor> found{at::from_blob(both.get(), {images, classes}),
                                        at::from_blob(prediction.get(), {images, classes}),
                                        at::from_blob(truth.get(), {images, classes}),
                                        at::from_blob(entropy.get(), {images})};
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(at::allclose(found[i].to(at::kDouble), wanted[i], 2e-5, 1e-5)) << i;

    const at::Tensor of_both = at::randn({images, classes}),
                     of_prediction = at::randn({images, classes}), of_entropy = at::randn({images});
    at::Tensor grad = at::full_like(logits, 99);
    cytra_cuda_class_grad({task,
                           of_both.const_data_ptr<float>(),
                           of_prediction.const_data_ptr<float>(),
                           of_entropy.const_data_ptr<float>(),
                           grad.mutable_data_ptr()});
    ((wanted[0] * of_both).sum() + (wanted[1] * of_prediction).sum() +
     (wanted[3] * of_entropy).sum())
        .backward();
    const double unit = type == at::kFloat ? 2e-6 : type == at::kHalf ? 1. / 1024 : 1. / 128;
    EXPECT_TRUE(at::allclose(grad.to(at::kDouble).contiguous(), leaf.grad(), unit, unit));
    // Gradients that nobody asked for are 0.
    cytra_cuda_class_grad({task, nullptr, nullptr, nullptr, grad.mutable_data_ptr()});
    EXPECT_EQ(grad.abs().max().item<double>(), 0);
  }
}
INSTANTIATE_TEST_SUITE_P(, ClassKernels, testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

TEST(ClassKernelsOfNumbers, RefuseWhatIsNoClass) {
  for (const float number : {3.F, -1.F, 0.5F, NAN}) {
    const at::Tensor logits = at::randn({1, 3, 2, 2}), target = at::full({1, 1, 2, 2}, 1.F);
    target[0][0][1][1] = number;
    const auto room = test::room_for<double>(10);
    const at::Tensor sums = at::zeros({10});
    auto* to = sums.mutable_data_ptr<float>();
    CudaClassSums task{};
    task.classes = {0,
                    at::kFloat,
                    1,
                    3,
                    4,
                    false,
                    true,
                    false,
                    logits.const_data_ptr(),
                    target.const_data_ptr<float>(),
                    nullptr};
    task.of_blocks = room.get();
    task.both = to;
    task.prediction = to + 3;
    task.truth = to + 6;
    task.cross_entropy = to + 9;
    EXPECT_THROW(cytra_cuda_class_sums(task), std::domain_error) << number;
  }
}

}  // namespace
}  // namespace cytra::ops::gpu
