#pragma once
// Sums of weighted voxels around places that do not follow the axes of an image.
#include <array>
#include <cstdint>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "data/sample/taps.h"

namespace cytra::data::spatial {

/// An image of planes as one of stacks (C,Z,Y,X).
inline at::Tensor as_stack(const at::Tensor& image) {
  return image.dim() == 4 ? image : image.unsqueeze(1);
}

/// Sums the first `given` taps along each axis (of TapsOf<2>: 2), for each voxel p of the result
/// those of the places matrix @ p, in float64. `taps_at`: (std::size_t axis of the image, double
/// place) -> TapsOf. Shape: image (C,[D,]H,W) of Source; matrix (dims+1, dims+1) float64; result
/// float32, contiguous.
template <class Source, class TapsAt>
void sum_at_matrix(const at::Tensor& image,
                   const at::Tensor& matrix,
                   std::size_t given,
                   const TapsAt& taps_at,
                   const at::Tensor& result) {
  const at::Tensor stack = as_stack(image), made = as_stack(result);
  const auto dims = static_cast<std::size_t>(matrix.size(0) - 1), lead = 3 - dims;
  std::array<std::array<double, 4>, 3> rows{};  // for (z,y,x,1)
  for (std::size_t d = 0; d < dims; ++d)
    for (std::size_t j = 0; j <= dims; ++j)
      rows[lead + d][lead + j] =
          matrix[static_cast<int64_t>(d)][static_cast<int64_t>(j)].item<double>();
  using Own = std::invoke_result_t<TapsAt, std::size_t, double>;
  const std::size_t count = std::is_same_v<Own, TapsOf<2>> ? 2 : given;
  const std::array<int64_t, 3> strides{stack.stride(1), stack.stride(2), stack.stride(3)};
  const int64_t channels = stack.size(0), channel_stride = stack.stride(0);
  const auto* from = stack.const_data_ptr<Source>();
  auto* to = made.mutable_data_ptr<float>();
  const int64_t height = made.size(2), width = made.size(3), voxels = made.size(1) * height * width;
  const auto one_voxel = [&](double z, double y, double x, int64_t voxel) {
    std::array<Own, 3> taps;
    taps[0].weight[0] = 1;
    for (std::size_t d = lead; d < 3; ++d) {
      const std::array<double, 4>& row = rows[d];
      taps[d] = taps_at(d - lead, row[0] * z + row[1] * y + row[2] * x + row[3]);
      for (std::size_t i = 0; i < count; ++i) taps[d].voxel[i] *= strides[d];
    }
    const std::size_t planes = lead > 0 ? 1 : count;
    for (int64_t c = 0; c < channels; ++c) {
      const Source* channel = from + c * channel_stride;
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
    int64_t z = begin / width / height, y = begin / width % height, x = begin % width;
    for (int64_t voxel = begin; voxel < end; ++voxel) {
      one_voxel(static_cast<double>(z), static_cast<double>(y), static_cast<double>(x), voxel);
      if (++x < width) continue;
      x = 0;
      if (++y < height) continue;
      y = 0;
      ++z;
    }
  });
}

}  // namespace cytra::data::spatial
