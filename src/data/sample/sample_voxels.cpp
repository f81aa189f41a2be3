// Source: torch's grid_sampler (aten/src/ATen/native/GridSampler.h).
#include "data/sample/sample_voxels.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "data/sample/resample.h"
#include "data/sample/taps.h"
#include "data/sample/taps_at_matrix.h"
#include "ops/labels/row_step.h"

namespace cytra::data::spatial {
namespace {

/// What lies beyond the image.
enum class Beyond { zeros, border, about_edges, about_centres, near };

Beyond beyond_of(const std::string& padding_mode, bool align_corners) {
  if (padding_mode == "zeros") return Beyond::zeros;
  if (padding_mode == "border") return Beyond::border;
  if (padding_mode == "near") return Beyond::near;
  return align_corners ? Beyond::about_centres : Beyond::about_edges;
}

double mirrored(double place, double low, double high) {
  const double span = high - low;
  if (span <= 0) return low;
  const double within = std::fmod(std::abs(place - low), 2 * span);
  return low + std::min(within, 2 * span - within);
}

constexpr std::size_t kBeside = 2;  // voxels

TapsOf<kBeside> beside(double place, int64_t n, Between between, Beyond beyond) {
  const auto last = static_cast<double>(n - 1);
  const bool is_far = beyond == Beyond::near && !(place >= -0.5 && place <= last + 0.5);
  if (beyond == Beyond::about_edges) place = mirrored(place, -0.5, last + 0.5);
  if (beyond == Beyond::about_centres) place = mirrored(place, 0, last);
  if (between == Between::nearest_even) place = std::nearbyint(snapped(place));
  if (between == Between::nearest_later) place = std::floor(snapped(place) + 0.5);
  // Two voxels away all is 0; what is not a number is outside, too.
  place = beyond == Beyond::zeros ? std::max(-2.0, std::min(place, last + 2))
                                  : std::max(0.0, std::min(place, last));
  auto below = static_cast<int64_t>(place);  // std::floor() is a call
  if (place < static_cast<double>(below)) --below;
  const double share = place - static_cast<double>(below);
  TapsOf<kBeside> taps;
  taps.voxel = {below, below + 1};
  taps.weight = {1 - share, share};
  for (std::size_t i = 0; i < kBeside; ++i) {
    if (is_far || taps.voxel[i] < 0 || taps.voxel[i] >= n) taps.weight[i] = 0;
    taps.voxel[i] = std::clamp<int64_t>(taps.voxel[i], 0, n - 1);
  }
  return taps;
}

}  // namespace

std::vector<AxisPlaces> places_along_axes(const at::Tensor& matrix,
                                          const std::vector<int64_t>& size) {
  constexpr double kNothing = 1e-8;  // voxels, over the whole image
  const auto dims = std::ssize(size);
  const at::Tensor follows =
      (matrix.narrow(0, 0, dims).narrow(1, 0, dims).abs() * at::tensor(size)).gt(kNothing);
  const auto is_one = [&](int64_t dim) { return follows.sum(dim).eq(1).all().item<bool>(); };
  std::vector<AxisPlaces> places;
  if (!is_one(0) || !is_one(1)) return places;
  for (int64_t d = 0; d < dims; ++d) {
    const auto axis = follows.select(1, d).to(at::kInt).argmax().item<int64_t>();
    const double step = matrix[axis][d].item<double>(), start = matrix[axis][-1].item<double>();
    AxisPlaces& own = places.emplace_back(AxisPlaces{axis, {}});
    for (int64_t i = 0; i < size[static_cast<std::size_t>(d)]; ++i)
      own.from.push_back(step * static_cast<double>(i) + start);
  }
  return places;
}

at::Tensor sample_along_axes(const at::Tensor& image,
                             const std::vector<AxisPlaces>& places,
                             const std::string& padding_mode,
                             bool align_corners,
                             c10::ScalarType dtype,
                             const std::string& folder) {
  const Beyond beyond = beyond_of(padding_mode, align_corners);
  std::vector<AxisTaps> axes;
  std::vector<int64_t> shape{image.size(0)};
  for (const AxisPlaces& own : places) {
    AxisTaps& axis = axes.emplace_back(AxisTaps{own.axis, {}});
    for (const double place : own.from) {
      const auto [voxel, weight] = beside(place, image.size(own.axis + 1), own.between, beyond);
      axis.taps.push_back({{voxel[0], voxel[1]}, {weight[0], weight[1]}});
    }
    shape.push_back(std::ssize(own.from));
  }
  at::Tensor result = ops::room_for(shape, at::kFloat, folder);
  if (result.numel() == 0) return result;
  const bool is_nearest = std::ranges::none_of(
      places, [](const AxisPlaces& own) { return own.between == Between::linear; });
  const std::size_t count = is_nearest ? 1 : kBeside;
  dtype == at::kDouble ? sum_along_axes<float, double>(image, axes, count, result)
                       : sum_along_axes<float, float>(image, axes, count, result);
  return result;
}

at::Tensor sample_at_matrix(const at::Tensor& image,
                            const at::Tensor& matrix,
                            const std::vector<int64_t>& size,
                            Between between,
                            const std::string& padding_mode,
                            bool align_corners,
                            const std::string& folder) {
  const Beyond beyond = beyond_of(padding_mode, align_corners);
  std::vector<int64_t> shape = size;
  shape.insert(shape.begin(), image.size(0));
  at::Tensor result = ops::room_for(shape, at::kFloat, folder);
  const auto taps_at = [&](std::size_t axis, double place) {
    return beside(place, image.size(static_cast<int64_t>(axis) + 1), between, beyond);
  };
  image.scalar_type() == at::kInt ? sum_at_matrix<int32_t>(image, matrix, kBeside, taps_at, result)
                                  : sum_at_matrix<float>(image, matrix, kBeside, taps_at, result);
  return result;
}

}  // namespace cytra::data::spatial
