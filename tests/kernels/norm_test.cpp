// The CUDA kernels of instance and group norm, on a CPU, against float64 by ATen.
#include "ops/cuda/norm.cu"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/kernels/room.h"

namespace cytra::ops::gpu {
namespace {

struct NormCase {
  std::vector<int64_t> shape;
  int64_t groups;
  double slope = 0.01;
  bool is_affine = true;
  double mean = 0, deviation = 1;
  double special = 1;  // the value of one voxel, when it is not 1
  int64_t splits = 1;
};

struct NormResult {
  at::Tensor y, dx, dweight, dbias;
};

NormResult by_kernels(const at::Tensor& x,
                      const at::Tensor& grad,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      const NormCase& of) {
  CudaNorm task{};
  const int64_t channels = x.size(1), count = x.size(0) * channels;
  task.cells = {x.size(0),
                channels,
                x.numel() / count,
                of.groups,
                !x.is_contiguous(),
                1e-5,
                static_cast<float>(of.slope)};
  task.type = x.scalar_type();
  task.x = x.const_data_ptr();
  const at::Tensor y = at::full_like(x, 123), dx = at::full_like(x, 123);
  task.y = y.mutable_data_ptr();
  if (weight.defined()) {
    task.weight = weight.const_data_ptr<float>();
    task.bias = bias.const_data_ptr<float>();
  }
  const auto statistics = test::room_for<double>(task.cells.shares() * 2);
  const auto coefficients = test::room_for<Coefficients>(count);
  const auto sums = test::room_for<Sums>(of.splits * count);
  task.statistics = statistics.get();
  task.coefficients = coefficients.get();
  task.sums = {sums.get(), of.splits};
  cytra_cuda_norm(task);
  const auto more_sums = test::room_for<Sums>(of.splits * count);
  task.sums.of_splits = more_sums.get();
  const auto dweight = test::room_for<float>(channels), dbias = test::room_for<float>(channels);
  cytra_cuda_norm_grad(
      {task, grad.const_data_ptr(), dx.mutable_data_ptr(), dweight.get(), dbias.get()});
  return {y,
          dx,
          at::from_blob(dweight.get(), {channels}).clone(),
          at::from_blob(dbias.get(), {channels}).clone()};
}

NormResult in_float64(const at::Tensor& x,
                      const at::Tensor& grad,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      const NormCase& of) {
  const auto leaf = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(at::kDouble).contiguous().requires_grad_(true) : tensor;
  };
  const at::Tensor input = leaf(x), w = leaf(weight), b = leaf(bias);
  const at::Tensor z = at::group_norm(input, of.groups, w, b, 1e-5);
  const at::Tensor y = of.slope == 1 ? z : at::leaky_relu(z, of.slope);
  y.backward(grad.to(at::kDouble));
  return {y.detach(),
          input.grad(),
          w.defined() ? w.grad() : at::Tensor(),
          b.defined() ? b.grad() : at::Tensor()};
}

void expect_near(const at::Tensor& got, const at::Tensor& wanted, double tolerance) {
  if (!wanted.defined()) return;
  const at::Tensor one = got.to(at::kDouble).contiguous(), other = wanted.contiguous();
  ASSERT_TRUE(one.isfinite().equal(other.isfinite()));
  const at::Tensor finite = other.isfinite();
  if (!finite.any().item<bool>()) return;
  const double scale = std::max(1e-6, other.masked_select(finite).abs().max().item<double>());
  EXPECT_LE((one - other).masked_select(finite).abs().max().item<double>(), tolerance * scale);
}

void expect_equal_to_float64(const NormCase& of, at::ScalarType type, bool is_channels_last) {
  SCOPED_TRACE(testing::Message() << at::IntArrayRef(of.shape) << " groups " << of.groups << ' '
                                  << type << (is_channels_last ? " last" : "") << " slope "
                                  << of.slope << " mean " << of.mean << " special " << of.special
                                  << " splits " << of.splits);
  at::manual_seed(1);
  at::Tensor x = (at::randn(of.shape) * of.deviation + of.mean).to(type);
  at::Tensor grad = at::randn(of.shape).to(type);
  if (of.special != 1) x.flatten()[x.numel() / 2] = of.special;
  if (is_channels_last) {
    const auto format =
        x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    x = x.contiguous(format);
    grad = grad.contiguous(format);
  }
  at::Tensor weight, bias;
  if (of.is_affine) {
    weight = at::rand({of.shape[1]}) + 0.5;
    bias = at::randn({of.shape[1]});
    weight[0] = -0.7;
  }
  const NormResult got = by_kernels(x, grad, weight, bias, of);
  const NormResult wanted = in_float64(x, grad, weight, bias, of);
  // Half a unit of the type's last place, of values up to 4; of a mean that is large against the
  // deviation x itself has lost digits.
  const double unit = type == at::kFloat ? 2e-5 : type == at::kHalf ? 1. / 1024 : 1. / 128;
  const double loss = of.mean != 0 && type == at::kFloat ? 30 : 1;
  expect_near(got.y, wanted.y, unit * loss);
  expect_near(got.dx, wanted.dx, 2.5 * unit * loss);
  expect_near(got.dweight, wanted.dweight, 1e-4 * loss);
  expect_near(got.dbias, wanted.dbias, 1e-4 * loss);
}

class NormKernels : public testing::TestWithParam<std::tuple<at::ScalarType, bool>> {};

TEST_P(NormKernels, EqualFloat64) {
  const NormCase cases[] = {
      {{2, 6, 7, 5}, 6},
      {{2, 6, 7, 5}, 2, 0.01, true, 3, 2},
      {{2, 6, 7, 5}, 1, 1, false, 3, 2},
      {{1, 33, 3, 1}, 33, 0},
      {{1, 65, 2, 3}, 5, 0.2},
      {{3, 80, 2, 3}, 2},  // more cells of a share than lanes
      {{3, 2, 1, 9}, 2},
      {{1, 3, 5, 7, 3}, 3},
      {{1, 4, 33, 47}, 4, 0.01, true, 0, 1, 1, 3},
      {{2, 40, 9, 10}, 1, 0.01, true, 0, 1, 1, 3},
      {{1, 2, 40, 70}, 2, 0.01, true, 0, 1, 1, 40},  // more splits than lanes, or than there is
                                                     // work
      {{2, 4, 6, 6}, 4, 0.01, true, 0, 1, INFINITY},
      {{2, 4, 6, 6}, 4, 0.01, true, 0, 1, NAN},
      {{2, 4, 6, 6}, 4, 0, true, 0, 1, -INFINITY},
      {{2, 4, 6, 6}, 4, 0.01, true, 3.25, 0},  // constant
      {{2, 4, 6, 6}, 4, -0.5},
      {{2, 16, 12, 16}, 16, 0.01, true, 1, 1, 1, 2},  // whole vectors, of voxels and of channels
      {{1, 8, 130, 128}, 8, 0.01, true, 1},  // more values of a thread than it sums in float32
  };
  const auto [type, is_channels_last] = GetParam();
  for (const NormCase& of : cases) expect_equal_to_float64(of, type, is_channels_last);
  if (is_channels_last)  // more vectors of channels than lanes
    expect_equal_to_float64({{2, 264, 5, 8}, 3, 0.01, true, 1, 1, 1, 3}, type, true);
}
INSTANTIATE_TEST_SUITE_P(,
                         NormKernels,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                                          testing::Bool()));

TEST(NormKernelsOfFloats, KeepTheDigitsOfALargeMean) {
  for (const bool is_channels_last : {false, true}) {
    expect_equal_to_float64({{1, 4, 60, 70}, 4, 0.01, true, 1e4}, at::kFloat, is_channels_last);
    expect_equal_to_float64({{1, 4, 60, 70}, 2, 0.01, true, -1e4}, at::kFloat, is_channels_last);
  }
}

TEST(NormKernelsOfFloats, PlacesBeyond32Bits) {
  const int64_t channels = 8, voxels = (int64_t{1} << 29) + 1000;  // 4.3e9 values
  for (const int width : {1, 8}) {
    for (const bool is_channels_last : {false, true}) {
      const Cells cells{1, channels, voxels, channels, is_channels_last, 1e-5, 0.01F};
      const int lanes = cells.lanes(width), lines = kThreads / lanes;
      const auto last_block = static_cast<uint32_t>(cells.blocks(width) - 1);
      const auto place = [&](uint32_t part, int line, int lane) {
        return share_of(cells, width, last_block, part, 65535, line, lines, lane, lanes);
      };
      // The last of all values is in some thread's last vector.
      int64_t last = 0, count = 0;
      for (uint32_t part = 65000; part < 65535; ++part) {
        for (int line = 0; line < lines; ++line) {
          const ThreadShare of = place(part, line, lanes - 1);
          if (of.count == 0) continue;
          EXPECT_EQ(of.cell, is_channels_last ? channels - width : channels - 1);
          last = std::max(last, of.first + (of.count - 1) * of.step + width);
          count += of.count;
        }
      }
      EXPECT_EQ(last, channels * voxels);
      EXPECT_GT(count, 0);
    }
  }
}

}  // namespace
}  // namespace cytra::ops::gpu

// LibTorch itself is compiled without the sanitizers.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:detect_container_overflow=0";
}
