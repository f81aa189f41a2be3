#pragma once
// Sums of weighted voxels, the common part of the ways to sample between voxels.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace cytra::data::spatial {

constexpr std::size_t kMostTaps = 6;        // a spline of order 5
constexpr int64_t kSampledAlone = 1 << 15;  // values: less is done before a second thread starts

/// The voxels along an axis that contribute to a place, and their weights.
template <std::size_t kMost>
struct TapsOf {
  std::array<int64_t, kMost> voxel{};
  std::array<double, kMost> weight{};
};
using Taps = TapsOf<kMostTaps>;

/// The taps of each voxel of a result's axis along `axis` of the image, 0: the first spatial one.
struct AxisTaps {
  int64_t axis = 0;
  std::vector<Taps> taps;
};

/// Sums `count` taps along each axis in T, line by line.
/// Shape: image (C,[D,]H,W) of Source, any strides; result (C, taps of each axis) float32.
template <class Source, class T>
void sum_along_axes(const at::Tensor& image,
                    const std::vector<AxisTaps>& axes,
                    std::size_t count,
                    const at::Tensor& result) {
  std::array<const std::vector<Taps>*, 3> taps{};
  std::array<int64_t, 3> strides{};
  const std::size_t lead = 3 - axes.size();
  const std::vector<Taps> one{{{}, {1}}};  // a plane has no first axis
  taps[0] = &one;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    taps[lead + d] = &axes[d].taps;
    strides[lead + d] = image.stride(axes[d].axis + 1);
  }
  const std::vector<Taps>& along = *taps[2];
  int64_t first = along[0].voxel[0], last = first;
  std::vector<int64_t> voxels;  // `count` of each place of a line, side by side
  std::vector<T> weights;
  for (const Taps& own : along) {
    for (std::size_t k = 0; k < count; ++k) {
      first = std::min(first, own.voxel[k]);
      last = std::max(last, own.voxel[k]);
      voxels.push_back(own.voxel[k]);
      weights.push_back(static_cast<T>(own.weight[k]));
    }
  }
  const auto* from = image.const_data_ptr<Source>();
  auto* to = result.mutable_data_ptr<float>();
  const auto width = std::ssize(along), height = std::ssize(*taps[1]), depth = std::ssize(*taps[0]);
  const int64_t length = last + 1 - first, stride = strides[2];
  const int64_t grain = std::max<int64_t>(1, kSampledAlone / (width + 4 * length));
  at::parallel_for(0, image.size(0) * depth * height, grain, [&](int64_t begin, int64_t end) {
    std::vector<T> blended(static_cast<std::size_t>(length));  // all lines of the image
    for (int64_t row = begin; row < end; ++row) {
      const Taps& z = (*taps[0])[static_cast<std::size_t>(row / height % depth)];
      const Taps& y = (*taps[1])[static_cast<std::size_t>(row % height)];
      const Source* channel = from + row / height / depth * image.stride(0) + first * stride;
      std::ranges::fill(blended, T{0});
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          const T weight = static_cast<T>(z.weight[i]) * static_cast<T>(y.weight[j]);
          if (weight == 0) continue;
          const Source* line = channel + z.voxel[i] * strides[0] + y.voxel[j] * strides[1];
          T* sums = blended.data();
          if (stride == 1) {
            for (int64_t x = 0; x < length; ++x) sums[x] += weight * static_cast<T>(line[x]);
          } else {
            for (int64_t x = 0; x < length; ++x)
              sums[x] += weight * static_cast<T>(line[x * stride]);
          }
        }
      }
      const T* sums = blended.data() - first;
      float* made = to + row * width;
      const int64_t* voxel = voxels.data();
      const T* weight = weights.data();
      for (int64_t x = 0; x < width; ++x) {
        T sum = 0;
        for (std::size_t k = 0; k < count; ++k) sum += *weight++ * sums[*voxel++];
        made[x] = static_cast<float>(sum);
      }
    }
  });
}

}  // namespace cytra::data::spatial
