// Source: scipy's ni_splines.c and ni_interpolation.c; the poles: M. Unser et al., "B-spline signal
// processing", 1993. In float64.
#include "data/sample/spline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "data/sample/pad_crop.h"
#include "data/sample/resample.h"
#include "data/sample/sample_voxels.h"
#include "data/sample/taps.h"
#include "data/sample/taps_at_matrix.h"
#include "ops/labels/row_step.h"

namespace cytra::data::spatial {
namespace {

constexpr int64_t kBorder = 12;  // voxels of border that scipy filters along

enum class Padding { zeros, border, reflection };

std::vector<double> spline_poles(int64_t order) {
  const auto sqrt = [](double x) { return std::sqrt(x); };
  if (order == 2) return {sqrt(8) - 3};
  if (order == 3) return {sqrt(3) - 2};
  if (order == 4) {
    return {sqrt(664 - sqrt(438976)) + sqrt(304) - 19, sqrt(664 + sqrt(438976)) - sqrt(304) - 19};
  }
  if (order == 5) {
    return {sqrt(67.5 - sqrt(4436.25)) + sqrt(26.25) - 6.5,
            sqrt(67.5 + sqrt(4436.25)) - sqrt(26.25) - 6.5};
  }
  return {};
}

/// Changes the voxels of `width` lines side by side, of n voxels `stride` apart, to the
/// coefficients of their splines; beyond its ends a line is mirrored about the edges of its outer
/// voxels, or about their centres.
void filter_lines(double* lines,
                  int64_t n,
                  int64_t stride,
                  int64_t width,
                  const std::vector<double>& poles,
                  bool about_edges) {
  constexpr double kNothing = 1e-300;
  const auto line = [&](int64_t i) { return lines + i * stride; };
  std::vector<double> first(static_cast<std::size_t>(width));
  for (const double z : poles) {
    const double gain = (1 - z) * (1 - 1 / z);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t x = 0; x < width; ++x) line(i)[x] *= gain;
    std::copy_n(lines, width, first.begin());
    const double last = std::pow(z, static_cast<double>(about_edges ? n : n - 1));
    double power = z;
    for (int64_t x = 0; x < width; ++x) lines[x] += last * line(n - 1)[x];
    for (int64_t i = 1; i < (about_edges ? n : n - 1); ++i, power *= z) {
      if (std::abs(power) < kNothing) break;
      for (int64_t x = 0; x < width; ++x)
        lines[x] += power * (line(i)[x] + last * line(n - 1 - i)[x]);
    }
    for (int64_t x = 0; x < width; ++x) {
      lines[x] /= 1 - last * last;
      if (about_edges) lines[x] = lines[x] * z + first[static_cast<std::size_t>(x)];
    }
    for (int64_t i = 1; i < n; ++i)
      for (int64_t x = 0; x < width; ++x) line(i)[x] += z * line(i - 1)[x];
    double *end = line(n - 1), *before = line(n - 2);
    for (int64_t x = 0; x < width; ++x)
      end[x] = about_edges ? end[x] * z / (z - 1) : (z * before[x] + end[x]) * z / (z * z - 1);
    for (int64_t i = n - 2; i >= 0; --i)
      for (int64_t x = 0; x < width; ++x) line(i)[x] = z * (line(i + 1)[x] - line(i)[x]);
  }
}

/// Changes values (...) float64, contiguous, to coefficients.
void filter(const at::Tensor& values, int64_t order, bool about_edges) {
  constexpr int64_t kSideBySide = 64;
  const std::vector<double> poles = spline_poles(order);
  auto* from = values.mutable_data_ptr<double>();
  for (int64_t dim = 0; dim < values.dim() && !poles.empty(); ++dim) {
    const int64_t n = values.size(dim), stride = values.stride(dim);
    if (n == 1) continue;
    const int64_t parts = (stride + kSideBySide - 1) / kSideBySide;
    at::parallel_for(
        0, values.numel() / n / stride * parts, 1 + 256 / stride, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t x = i % parts * kSideBySide;
            filter_lines(from + i / parts * n * stride + x,
                         n,
                         stride,
                         std::min(kSideBySide, stride - x),
                         poles,
                         about_edges);
          }
        });
  }
}

/// The voxels that contribute to a place along an axis of n voxels, and their weights.
Taps taps_at(double x, int64_t n, int64_t order, Padding padding) {
  Taps taps;
  const auto end = static_cast<double>(n - 1);
  if (padding == Padding::border) x = std::clamp(x, 0.0, end);
  if (padding == Padding::zeros && (snapped(x) < 0 || snapped(x) > end)) return taps;
  // Knots lie on the voxels, or with an even order in the middle between two.
  const double shift = order % 2 == 0 ? 0.5 : 0.0;
  const double knot = std::floor((order == 0 ? snapped(x) : x) + shift);
  const double t = x + shift - knot;
  taps.weight[0] = 1;
  for (std::size_t j = 1; j <= static_cast<std::size_t>(order); ++j) {  // Cox and de Boor
    double saved = 0;
    for (std::size_t r = 0; r < j; ++r) {
      const double part = taps.weight[r] / static_cast<double>(j);
      taps.weight[r] = saved + (static_cast<double>(r + 1) - t) * part;
      saved = (t + static_cast<double>(j - r - 1)) * part;
    }
    taps.weight[j] = saved;
  }
  const bool about_edges = padding == Padding::reflection;
  const int64_t period = std::max<int64_t>(1, about_edges ? 2 * n : 2 * n - 2);
  for (int64_t k = 0; k <= order; ++k) {
    int64_t voxel = static_cast<int64_t>(knot) - order / 2 + k;
    if (padding == Padding::border) {
      voxel = std::clamp<int64_t>(voxel, 0, n - 1);
    } else {
      voxel = (voxel % period + period) % period;
      if (voxel >= n) voxel = period - (about_edges ? 1 : 0) - voxel;
    }
    taps.voxel[static_cast<std::size_t>(k)] = voxel;
  }
  return taps;
}

/// The matrix for align_corners as MONAI applies it to splines, unlike grid_sample: the result is
/// stretched about its centre by n / (n - 1), and the image is shrunk by the same factor.
at::Tensor stretched(const at::Tensor& matrix, at::IntArrayRef image, at::IntArrayRef size) {
  at::Tensor of_result = at::eye(matrix.size(0), at::kDouble), of_image = of_result.clone();
  const int64_t dims = matrix.size(0) - 1;
  for (int64_t d = 0; d < dims; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const auto to = static_cast<double>(std::max<int64_t>(2, size[at]));
    const auto from = static_cast<double>(std::max<int64_t>(2, image[at]));
    const double scale = to / (to - 1), centre = static_cast<double>(size[at] - 1) / 2;
    of_result[d][d] = scale;
    of_result[d][dims] = centre * (1 - scale);
    of_image[d][d] = (from - 1) / from;
    of_image[d][dims] = (from - 1) / from / 2;
  }
  return of_image.matmul(matrix).matmul(of_result);
}

/// Voxels of an axis; beyond the image: of its border.
struct AxisRange {
  int64_t begin, end;
};

/// The voxels that determine a part of the result to 1e-17 of its values.
std::vector<AxisRange> ranges_of(const at::Tensor& matrix,
                                 const at::Tensor& image,
                                 const std::vector<int64_t>& part,
                                 int64_t border,
                                 int64_t order) {
  constexpr double kNothing = 1e-17;
  auto reach = static_cast<double>(order + 1);
  for (const double pole : spline_poles(order))
    reach += std::ceil(std::log(kNothing) / std::log(std::abs(pole)));
  std::vector<AxisRange> ranges;
  for (int64_t d = 0; d < std::ssize(part); ++d) {
    double low = matrix[d][-1].item<double>(), high = low;
    for (std::size_t j = 0; j < part.size(); ++j) {
      const double step =
          matrix[d][static_cast<int64_t>(j)].item<double>() * static_cast<double>(part[j] - 1);
      (step < 0 ? low : high) += step;
    }
    const auto first = static_cast<double>(-border),
               last = static_cast<double>(image.size(d + 1) + border - 1);
    const double before = low;
    if (high > last) low = std::min(low, 2 * last - high);  // what is mirrored there
    if (before < first) high = std::max(high, 2 * first - before);
    ranges.push_back({static_cast<int64_t>(std::clamp(std::floor(low) - reach, first, last)),
                      static_cast<int64_t>(std::clamp(std::ceil(high) + reach, first, last)) + 1});
  }
  return ranges;
}

/// The rows of the result, from `row` on, whose coefficients are not too many at once.
int64_t rows_at_once(const at::Tensor& image,
                     const at::Tensor& matrix,
                     std::vector<int64_t> size,
                     int64_t row,
                     int64_t border,
                     int64_t order,
                     int64_t at_once) {
  constexpr int64_t kFewest = 16;
  const at::Tensor here = matrix.clone();
  here.select(1, -1).add_(matrix.select(1, 0), static_cast<double>(row));
  for (size[0] -= row; size[0] > kFewest; size[0] = std::max(kFewest, size[0] / 2)) {
    int64_t voxels = 1;
    for (const AxisRange& range : ranges_of(here, image, size, border, order))
      voxels *= range.end - range.begin;
    if (voxels <= at_once) break;
  }
  return size[0];
}

/// Copies a part of a channel; beyond its edges they are repeated. float64.
at::Tensor part_of(const at::Tensor& channel, const std::vector<AxisRange>& ranges) {
  at::Tensor part = channel;
  for (std::size_t d = ranges.size(); d-- > 0;) {
    const auto& [begin, end] = ranges[d];
    const int64_t n = channel.size(static_cast<int64_t>(d));
    if (begin >= 0 && end <= n)
      part = part.narrow(static_cast<int64_t>(d), begin, end - begin);
    else
      part = part.index_select(static_cast<int64_t>(d), at::arange(begin, end).clamp_(0, n - 1));
  }
  return part.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).contiguous();
}

}  // namespace

at::Tensor sample_spline(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         int64_t order,
                         const std::string& padding_mode,
                         bool align_corners,
                         const std::string& folder,
                         int64_t at_once) {
  check_made_size(size);
  const Padding padding = padding_mode == "border"  ? Padding::border
                          : padding_mode == "zeros" ? Padding::zeros
                                                    : Padding::reflection;
  const at::Tensor from =
      align_corners ? stretched(matrix, image.sizes().slice(1), size) : matrix.contiguous();
  std::vector<int64_t> shape = size;
  shape.insert(shape.begin(), image.size(0));
  at::Tensor result = ops::room_for(shape, at::kFloat, folder);
  const int64_t border = padding == Padding::border && order > 1 ? kBorder : 0;
  for (int64_t row = 0; row < size[0];) {
    const int64_t count = rows_at_once(image, from, size, row, border, order, at_once);
    std::vector<int64_t> part = size;
    part[0] = count;
    const at::Tensor here = from.clone();  // from a voxel of these rows
    here.select(1, -1).add_(from.select(1, 0), static_cast<double>(row));
    const std::vector<AxisRange> ranges = ranges_of(here, image, part, border, order);
    for (std::size_t d = 0; d < ranges.size(); ++d)
      here[static_cast<int64_t>(d)][-1] -= static_cast<double>(ranges[d].begin);
    const std::vector<AxisPlaces> places = places_along_axes(here, part);
    for (int64_t c = 0; c < image.size(0); ++c) {
      const at::Tensor coefficients = part_of(image[c], ranges);
      filter(coefficients, order, padding != Padding::zeros);
      const at::Tensor box = coefficients.unsqueeze(0),
                       made = result.narrow(0, c, 1).narrow(1, row, count);
      const auto count_of_taps = static_cast<std::size_t>(order) + 1;
      const auto taps = [&](std::size_t axis, double place) {
        return taps_at(place, coefficients.size(static_cast<int64_t>(axis)), order, padding);
      };
      if (places.empty()) {
        sum_at_matrix<double>(box, here, count_of_taps, taps, made);
        continue;
      }
      std::vector<AxisTaps> axes;
      for (const AxisPlaces& own : places) {
        AxisTaps& axis = axes.emplace_back(AxisTaps{own.axis, {}});
        for (const double place : own.from)
          axis.taps.push_back(taps(static_cast<std::size_t>(own.axis), place));
      }
      sum_along_axes<double, double>(box, axes, count_of_taps, made);
    }
    row += count;
  }
  return result;
}

}  // namespace cytra::data::spatial
