#include "data/transforms/fundus/block_means.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace cytra::data::fundus {
namespace {

/// Adds a row to `sums`, a value for each pixel.
void add_row(const auto* from, int64_t step, std::vector<uint32_t>& sums) {
  const auto width = std::ssize(sums);
  uint32_t* into = sums.data();
  if (step == 1) {
    for (int64_t x = 0; x < width; ++x) into[x] += from[x];
  } else {
    for (int64_t x = 0; x < width; ++x) into[x] += from[x * step];
  }
}

template <class T>
void means_of(const at::Tensor& images, int64_t block, at::Tensor& means) {
  const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
  const int64_t rows = means.size(2), columns = means.size(3);
  const auto* first = static_cast<const T*>(images.const_data_ptr());
  auto* into = means.data_ptr<float>();
  constexpr int64_t kGrain = 1 << 16;  // pixels
  const int64_t grain = std::max<int64_t>(1, kGrain / (width * block));
  at::parallel_for(0, images.size(0) * channels * rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> sums(static_cast<std::size_t>(width));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / rows / channels, c = i / rows % channels, y = i % rows * block;
      const int64_t high = std::min(block, height - y);
      const T* from = first + n * images.stride(0) + c * images.stride(1) + y * images.stride(2);
      std::ranges::fill(sums, 0);
      for (int64_t k = 0; k < high; ++k)
        add_row(from + k * images.stride(2), images.stride(3), sums);
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t x = j * block, wide = std::min(block, width - x);
        uint64_t sum = 0;
        for (int64_t k = 0; k < wide; ++k) sum += sums[static_cast<std::size_t>(x + k)];
        into[i * columns + j] = static_cast<float>(sum) / static_cast<float>(high * wide);
      }
    }
  });
}

}  // namespace

at::Tensor block_means(const at::Tensor& images, int64_t block) {
  const bool is_short = images.scalar_type() == at::kByte || images.scalar_type() == at::kUInt16;
  if (!images.is_cpu() || !is_short) {
    const at::Tensor values = images.to(at::kFloat);
    return block == 1 ? values
                      : at::avg_pool2d(values,
                                       {block, block},
                                       {},
                                       {0, 0},
                                       /*ceil_mode=*/true,
                                       /*count_include_pad=*/false);
  }
  const auto count = [block](int64_t side) { return (side + block - 1) / block; };
  at::Tensor means = at::empty(
      {images.size(0), images.size(1), count(images.size(2)), count(images.size(3))}, at::kFloat);
  if (images.scalar_type() == at::kByte)
    means_of<uint8_t>(images, block, means);
  else
    means_of<uint16_t>(images, block, means);
  return means;
}

}  // namespace cytra::data::fundus
