// The CUDA kernels of the sliding window's sums, on a CPU, against plain loops and ATen.
#include "ops/cuda/window_sums.cu"

#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra::ops {
namespace {

TEST(WindowGatherKernel, EqualsPlainLoops) {
  std::mt19937 random(2);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int turn = 0; turn < 60; ++turn) {
    SCOPED_TRACE(turn);
    at::manual_seed(turn);
    const std::array<at::ScalarType, 3> types{at::kFloat, at::kHalf, at::kBFloat16};
    const at::ScalarType type = types[static_cast<std::size_t>(pick(0, 2))];
    const int64_t channels = pick(1, 3), count = pick(1, 4);
    std::array<int64_t, 3> roi{}, size{};
    std::array<std::vector<int32_t>, 3> starts, source;
    for (std::size_t d = 0; d < 3; ++d) {
      roi[d] = pick(1, 5);
      size[d] = pick(1, 9);
      for (int64_t i = pick(1, 3); i > 0; --i)
        starts[d].push_back(static_cast<int32_t>(pick(0, 4)));
      for (int i = 0; i < 9; ++i)  // padding comes from anywhere
        source[d].push_back(static_cast<int32_t>(pick(-1, size[d] - 1)));
    }
    // The image is a ring of planes, and a part of a wider one.
    const int64_t length = pick(1, size[0]);
    const at::Tensor image =
        at::randn({channels, length, size[1], size[2] + 2}).to(type).narrow(3, 1, size[2]);
    const auto in_axis = [&](std::size_t d) { return static_cast<int64_t>(starts[d].size()); };
    const int64_t first = pick(0, in_axis(0) * in_axis(1) * in_axis(2) - 1),
                  most = in_axis(0) * in_axis(1) * in_axis(2) - first;
    at::Tensor windows = at::empty({std::min(count, most), channels, roi[0], roi[1], roi[2]});
    if (pick(0, 1) == 1) windows = windows.contiguous(at::MemoryFormat::ChannelsLast3d);
    CudaGather task{};
    task.image = image.const_data_ptr();
    task.type = type;
    std::copy_n(image.strides().begin(), 4, task.image_strides.begin());
    task.length = length;
    for (std::size_t d = 0; d < 3; ++d) {
      task.starts[d] = starts[d].data();
      task.source[d] = source[d].data();
      task.counts[d] = in_axis(d);
    }
    task.first = first;
    task.pad_value = 0.25F;
    task.windows = windows.mutable_data_ptr<float>();
    std::copy_n(windows.sizes().begin(), 5, task.shape.begin());
    std::copy_n(windows.strides().begin(), 5, task.strides.begin());
    ASSERT_TRUE(cytra_cuda_gather(task));
    const at::Tensor values = image.to(at::kFloat);
    for (int64_t s = 0; s < windows.size(0); ++s) {
      const int64_t w = first + s;
      const std::array<int64_t, 3> place{
          w / in_axis(2) / in_axis(1), w / in_axis(2) % in_axis(1), w % in_axis(2)};
      const auto from = [&](std::size_t d, int64_t i) {
        return source[d]
                     [static_cast<std::size_t>(starts[d][static_cast<std::size_t>(place[d])] + i)];
      };
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t z = 0; z < roi[0]; ++z)
          for (int64_t y = 0; y < roi[1]; ++y)
            for (int64_t x = 0; x < roi[2]; ++x) {
              const int64_t at_z = from(0, z), at_y = from(1, y), at_x = from(2, x);
              const bool is_inside = at_z >= 0 && at_y >= 0 && at_x >= 0;
              ASSERT_EQ(windows[s][c][z][y][x].item<float>(),
                        is_inside ? values[c][at_z % length][at_y][at_x].item<float>() : 0.25F);
            }
    }
  }
}

TEST(WindowGatherKernel, RefusesATypeThatItLacks) {
  CudaGather task{};
  task.type = at::kByte;
  EXPECT_FALSE(cytra_cuda_gather(task));
}

TEST(WindowSumKernel, AddsOrSetsAPartOfTheSums) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int turn = 0; turn < 60; ++turn) {
    SCOPED_TRACE(turn);
    at::manual_seed(turn);
    const std::array<at::ScalarType, 3> types{at::kFloat, at::kHalf, at::kBFloat16};
    const at::ScalarType type = types[static_cast<std::size_t>(pick(0, 2))];
    const int64_t classes = pick(1, 3), depth = pick(1, 4), height = pick(1, 7), width = pick(1, 9);
    // The sums hold `length` planes of a ring: plane z lies at z % length.
    CudaSum task{};
    const int64_t z0 = pick(0, 5), length = depth + pick(0, 2);
    const int64_t y0 = pick(0, 2), x0 = pick(0, 2), rows = y0 + height + pick(0, 1),
                  row = x0 + width + pick(0, 2);
    task.from = {z0, y0, x0};
    task.to = {z0 + depth, y0 + height, x0 + width};
    for (std::size_t d = 0; d < 3; ++d) task.fresh[d] = pick(task.from[d], task.to[d]);
    at::Tensor values = (at::randn({classes, depth, height, width}) * 3).to(type);
    if (pick(0, 1) == 1) values = values.permute({1, 2, 3, 0}).contiguous().permute({3, 0, 1, 2});
    if (pick(0, 4) == 0) values[0][0][0][0] = NAN;
    const at::Tensor map = at::rand({depth, height, width}) + 0.1;
    const at::Tensor sums = at::randn({classes, length, rows, row}), expected = sums.clone();
    task.values = values.const_data_ptr();
    task.type = type;
    task.strides = {values.stride(0), values.stride(1), values.stride(2), values.stride(3)};
    task.map = map.const_data_ptr<float>();
    task.map_strides = {map.stride(0), map.stride(1)};
    task.sums = sums.mutable_data_ptr<float>();
    task.shape = {classes, length, rows, row};
    cytra_cuda_sum(task);
    const at::Tensor products = (values.to(at::kFloat) * map).contiguous();
    for (int64_t k = 0; k < classes; ++k)
      for (int64_t z = 0; z < depth; ++z)
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < width; ++x) {
            const bool was_there =
                z + z0 < task.fresh[0] || y + y0 < task.fresh[1] || x + x0 < task.fresh[2];
            const at::Tensor sum = expected[k][(z + z0) % length][y + y0][x + x0];
            sum.copy_(was_there ? sum + products[k][z][y][x] : products[k][z][y][x]);
          }
    EXPECT_TRUE(at::allclose(sums, expected, 1e-6, 1e-6, true));
  }
}

class WindowFinishKernel : public testing::TestWithParam<std::tuple<Finish::Kind, at::ScalarType>> {
};

TEST_P(WindowFinishKernel, EqualsAten) {
  using Kind = Finish::Kind;
  const auto [kind, type] = GetParam();
  for (const int64_t classes : {1, 2, 5}) {
    at::manual_seed(classes);
    const int64_t rows = 7, width = 13,
                  made = kind == Kind::argmax || kind == Kind::entropy ? 1 : classes;
    const at::Tensor sums = at::randn({classes, rows + 2, width}) * 4,
                     weights = at::rand({rows, width}) + 0.5;
    const at::Tensor out = at::zeros({made, rows, width}, type);
    int64_t bad = 0;
    CudaFinish task{};
    task.sums = sums.const_data_ptr<float>();
    task.weights = weights.const_data_ptr<float>();
    task.classes = classes;
    task.rows = rows;
    task.width = width;
    task.sum_strides = {sums.stride(0), sums.stride(1)};
    task.out_strides = {out.stride(0), out.stride(1)};
    task.kind = kind;
    task.cut = 0.3F;
    task.out = out.mutable_data_ptr();
    task.type = type;
    task.bad = &bad;
    ASSERT_TRUE(cytra_cuda_finish(task));
    EXPECT_EQ(bad, 0);
    const at::Tensor logits = sums.narrow(1, 0, rows) / weights;
    at::Tensor expected = kind == Kind::logits    ? logits
                          : kind == Kind::sigmoid ? logits.sigmoid()
                          : kind == Kind::softmax ? logits.softmax(0)
                          : kind == Kind::argmax  ? logits.argmax(0, true)
                          : kind == Kind::entropy ? at::special_entr(logits.softmax(0)).sum(0, true)
                          : kind == Kind::binary_entropy ? at::special_entr(logits.sigmoid()) +
                                                               at::special_entr((-logits).sigmoid())
                                                         : (logits > 0.3).to(at::kFloat);
    const bool is_byte = type == at::kByte && (kind == Kind::sigmoid || kind == Kind::softmax);
    if (is_byte) expected = (expected * 255 + 0.5).floor();
    const double most = (out.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
    EXPECT_LE(most, is_byte ? 1 : 2e-6);  // a value at the border of two bytes
    sums[0][3][5] = NAN;
    sums[classes - 1][2][1] = INFINITY;
    sums[0][rows][0] = NAN;  // not of these rows
    cytra_cuda_finish(task);
    EXPECT_EQ(bad, 2);
    task.bad = nullptr;
    EXPECT_TRUE(cytra_cuda_finish(task));
  }
}
INSTANTIATE_TEST_SUITE_P(,
                         WindowFinishKernel,
                         testing::Values(std::tuple(Finish::Kind::logits, at::kFloat),
                                         std::tuple(Finish::Kind::sigmoid, at::kFloat),
                                         std::tuple(Finish::Kind::sigmoid, at::kByte),
                                         std::tuple(Finish::Kind::softmax, at::kFloat),
                                         std::tuple(Finish::Kind::softmax, at::kByte),
                                         std::tuple(Finish::Kind::argmax, at::kByte),
                                         std::tuple(Finish::Kind::argmax, at::kUInt16),
                                         std::tuple(Finish::Kind::argmax, at::kInt),
                                         std::tuple(Finish::Kind::threshold, at::kByte),
                                         std::tuple(Finish::Kind::entropy, at::kFloat),
                                         std::tuple(Finish::Kind::binary_entropy, at::kFloat)));

TEST(WindowFinishKernels, RefusesATypeThatItLacks) {
  CudaFinish task{};
  task.type = at::kDouble;
  EXPECT_FALSE(cytra_cuda_finish(task));
}

}  // namespace
}  // namespace cytra::ops
