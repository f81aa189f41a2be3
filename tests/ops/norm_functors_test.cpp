// What a GPU's threads do for a norm, done here one after the other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/cuda/norm_passes.h"
#include "ops/norm_cpu.h"

namespace cytra {
namespace {

namespace gpu = ops::gpu;
namespace cpu = ops::cpu;

gpu::Cells cells_of(const at::Tensor& x, const cpu::NormForm& form) {
  return {x.size(0),
          x.size(1),
          x.numel() / (x.size(0) * x.size(1)),
          form.groups,
          !x.is_contiguous(),
          form.eps,
          static_cast<float>(form.slope)};
}

/// As blocks of threads do: each some voxels.
template <class Term>
std::vector<gpu::Sums> sums_of_cells(const Term& term) {
  constexpr int64_t kThreads = 8;
  std::vector<gpu::Sums> sums;
  for (int64_t cell = 0; cell < term.cells.count(); ++cell) {
    gpu::Sums all{0, 0};
    for (int64_t thread = 0; thread < kThreads; ++thread) {
      const gpu::Sums some = gpu::sums_of(term, cell, thread, term.cells.voxels, kThreads);
      all.first += some.first;
      all.second += some.second;
    }
    sums.push_back(all);
  }
  return sums;
}

template <class Pass>
void each(const Pass& pass, int64_t count) {
  for (int64_t i = 0; i < count; ++i) pass(i);
}

template <class T>
void expect_equal_to_the_cpus(const at::Tensor& x,
                              const at::Tensor& weight,
                              const at::Tensor& bias,
                              const cpu::NormForm& form,
                              double tolerance) {
  // The CPU's kernels take no float16: their reference is in float32.
  const bool is_half = x.scalar_type() == at::kHalf;
  const at::Tensor reference = is_half ? x.to(at::kFloat) : x;
  const cpu::Normalized expected = cpu::normalize(reference, weight, bias, form, {});

  const gpu::Cells cells = cells_of(x, form);
  const bool is_affine = weight.defined();
  std::vector<gpu::Coefficients> coefficients(static_cast<std::size_t>(cells.count()));
  const at::Tensor statistics = at::empty({cells.shares(), 2}, at::kDouble);
  gpu::FinishMoments<T> finish{{cells, static_cast<const T*>(x.const_data_ptr())},
                               nullptr,
                               is_affine ? weight.const_data_ptr<float>() : nullptr,
                               is_affine ? bias.const_data_ptr<float>() : nullptr,
                               statistics.mutable_data_ptr<double>(),
                               coefficients.data()};
  const std::vector<gpu::Sums> moments = sums_of_cells(finish.term);
  finish.sums = moments.data();
  each(finish, cells.shares());
  const at::Tensor y = at::empty_like(x);
  each(
      gpu::Normalize<T>{
          cells, finish.term.x, static_cast<T*>(y.mutable_data_ptr()), coefficients.data()},
      x.numel());
  EXPECT_TRUE(at::allclose(statistics, expected.statistics, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(y.to(at::kFloat), expected.output.to(at::kFloat), tolerance, tolerance));

  const at::Tensor grad = at::randn_like(reference).to(x.scalar_type());
  const cpu::Gradients gradients =
      cpu::normalize_backward({reference, false, false, weight, bias, expected.statistics, form},
                              grad.to(reference.scalar_type()),
                              true);
  const gpu::GradTerm<T> term{
      cells, finish.term.x, static_cast<const T*>(grad.const_data_ptr()), coefficients.data()};
  std::vector<gpu::Sums> sums = sums_of_cells(term);
  each(gpu::FinishGrad{cells,
                       sums.data(),
                       finish.weight,
                       statistics.const_data_ptr<double>(),
                       coefficients.data()},
       cells.shares());
  const at::Tensor dx = at::empty_like(x);
  each(gpu::InputGrad<T>{term, static_cast<T*>(dx.mutable_data_ptr())}, x.numel());
  EXPECT_TRUE(at::allclose(dx.to(at::kFloat), gradients.x.to(at::kFloat), tolerance, tolerance));
  const at::Tensor of_channels =
      at::from_blob(sums.data(), {cells.samples, cells.channels, 2}, at::kDouble)
          .sum(0)
          .to(at::kFloat);
  if (!is_affine) return;
  EXPECT_TRUE(at::allclose(of_channels.select(1, 0), gradients.bias, 1e-3, 1e-3));
  EXPECT_TRUE(at::allclose(of_channels.select(1, 1), gradients.weight, 1e-3, 1e-3));
}

TEST(NormFunctors, EqualTheCpusKernels) {
  at::manual_seed(0);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 6, 9, 11}, {3, 4, 5, 6, 7}, {1, 34, 40, 41}}) {
    for (const bool is_last : {false, true}) {
      const auto format = !is_last            ? at::MemoryFormat::Contiguous
                          : shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                              : at::MemoryFormat::ChannelsLast3d;
      const int64_t channels = shape[1];
      const at::Tensor x =
          (at::randn(shape) * 2 + 30).contiguous(format);  // a mean to lose digits by
      const at::Tensor weight = at::rand({channels}) + 0.5, bias = at::randn({channels});
      for (const cpu::NormForm& form : {cpu::NormForm{channels, false, 1e-5, 0.01},
                                        cpu::NormForm{2, false, 1e-5, 1},
                                        cpu::NormForm{1, false, 1e-3, 0}}) {
        SCOPED_TRACE(testing::Message() << shape.size() << "D, last " << is_last << ", groups "
                                        << form.groups << ", slope " << form.slope);
        expect_equal_to_the_cpus<float>(x, weight, bias, form, 1e-5);
        expect_equal_to_the_cpus<float>(x, {}, {}, form, 1e-5);
        // half a unit of the last of 8 and 11 digits, of values up to 8
        expect_equal_to_the_cpus<c10::BFloat16>(x.to(at::kBFloat16), weight, bias, form, 2e-2);
        expect_equal_to_the_cpus<c10::Half>(x.to(at::kHalf), weight, bias, form, 4e-3);
      }
    }
  }
}

TEST(NormFunctors, AMeanFarFromZeroCostsTheVarianceNothing) {
  const at::Tensor x = at::randn({1, 1, 64, 64}) * 0.01 + 1000;
  const gpu::Cells cells = cells_of(x, {1, false, 0, 1});
  double statistics[2];
  gpu::Coefficients coefficients{};
  gpu::FinishMoments<float> finish{
      {cells, x.const_data_ptr<float>()}, nullptr, nullptr, nullptr, statistics, &coefficients};
  const std::vector<gpu::Sums> sums = sums_of_cells(finish.term);
  finish.sums = sums.data();
  finish(0);
  const at::Tensor exact = x.to(at::kDouble);
  EXPECT_NEAR(statistics[0], exact.mean().item<double>(), 1e-5);
  EXPECT_NEAR(statistics[1] / exact.var(false).item<double>(), 1, 1e-4);
}

}  // namespace
}  // namespace cytra
