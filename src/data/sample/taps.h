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
struct Taps {
  std::array<int64_t, kMostTaps> voxel{};
  std::array<double, kMostTaps> weight{};
};

/// The taps of each voxel of a result's axis along `axis` of the image, 0: the first spatial one.
struct AxisTaps {
  int64_t axis = 0;
  std::vector<Taps> taps;
};

/// An image of planes as one of stacks (C,Z,Y,X).
inline at::Tensor as_stack(const at::Tensor& image) {
  return image.dim() == 4 ? image : image.unsqueeze(1);
}

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
  std::vector<std::array<T, kMostTaps>> weights(along.size());
  for (std::size_t x = 0; x < along.size(); ++x) {
    for (std::size_t k = 0; k < count; ++k) {
      first = std::min(first, along[x].voxel[k]);
      last = std::max(last, along[x].voxel[k]);
      weights[x][k] = static_cast<T>(along[x].weight[k]);
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
      for (std::size_t x = 0; x < along.size(); ++x) {
        T sum = 0;
        for (std::size_t k = 0; k < count; ++k) sum += weights[x][k] * sums[along[x].voxel[k]];
        made[x] = static_cast<float>(sum);
      }
    }
  });
}

/// Sums `count` taps along each axis, for each voxel p of the result those of the places matrix @
/// p, in float64. `taps_at`: (std::size_t axis of the image, double place) -> Taps. Shape: image
/// (C,[D,]H,W) of Source; matrix (dims+1, dims+1) float64; result float32, contiguous.
template <class Source, class TapsAt>
void sum_at_matrix(const at::Tensor& image,
                   const at::Tensor& matrix,
                   std::size_t count,
                   const TapsAt& taps_at,
                   const at::Tensor& result) {
  const at::Tensor stack = as_stack(image), made = as_stack(result);
  const auto dims = static_cast<std::size_t>(matrix.size(0) - 1), lead = 3 - dims;
  std::array<std::array<double, 4>, 3> rows{};  // for (z,y,x,1)
  for (std::size_t d = 0; d < dims; ++d)
    for (std::size_t j = 0; j <= dims; ++j)
      rows[lead + d][lead + j] =
          matrix[static_cast<int64_t>(d)][static_cast<int64_t>(j)].item<double>();
  const auto* from = stack.const_data_ptr<Source>();
  auto* to = made.mutable_data_ptr<float>();
  const int64_t height = made.size(2), width = made.size(3), voxels = made.size(1) * height * width;
  const auto one_voxel = [&](double z, double y, double x, int64_t voxel) {
    std::array<Taps, 3> taps;
    taps[0].weight[0] = 1;
    for (std::size_t d = lead; d < 3; ++d) {
      const std::array<double, 4>& row = rows[d];
      taps[d] = taps_at(d - lead, row[0] * z + row[1] * y + row[2] * x + row[3]);
      for (int64_t& tap : taps[d].voxel) tap *= stack.stride(static_cast<int64_t>(d) + 1);
    }
    const std::size_t planes = lead > 0 ? 1 : count;
    for (int64_t c = 0; c < stack.size(0); ++c) {
      const Source* channel = from + c * stack.stride(0);
      double sum = 0;
      for (std::size_t i = 0; i < planes; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          const double weight = taps[0].weight[i] * taps[1].weight[j];
          if (weight == 0) continue;
          const Source* line = channel + taps[0].voxel[i] + taps[1].voxel[j];
          double part = 0;
          for (std::size_t k = 0; k < count; ++k)
            part += taps[2].weight[k] * static_cast<double>(line[taps[2].voxel[k]]);
          sum += weight * part;
        }
      }
      to[c * voxels + voxel] = static_cast<float>(sum);
    }
  };
  at::parallel_for(0, voxels, kSampledAlone / 8, [&](int64_t begin, int64_t end) {
    for (int64_t voxel = begin; voxel < end; ++voxel)
      one_voxel(static_cast<double>(voxel / width / height),
                static_cast<double>(voxel / width % height),
                static_cast<double>(voxel % width),
                voxel);
  });
}

}  // namespace cytra::data::spatial
