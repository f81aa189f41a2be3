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

namespace cytra::data::spatial {
namespace {

constexpr int64_t kMostTaps = 6;  // order 5
constexpr int64_t kBorder = 12;   // voxels of border that scipy filters along

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

/// Changes the voxels of a line to the coefficients of its spline; beyond its ends the line is
/// mirrored about the edges of its outer voxels, or about their centres.
void filter_line(double* c, int64_t n, const std::vector<double>& poles, bool about_edges) {
  for (const double z : poles) {
    const double gain = (1 - z) * (1 - 1 / z);
    for (int64_t i = 0; i < n; ++i) c[i] *= gain;
    const double first = c[0];
    const double last = std::pow(z, static_cast<double>(about_edges ? n : n - 1));
    double power = z;
    c[0] += last * c[n - 1];
    for (int64_t i = 1; i < (about_edges ? n : n - 1); ++i, power *= z)
      c[0] += power * (c[i] + last * c[n - 1 - i]);
    c[0] /= 1 - last * last;
    if (about_edges) c[0] = c[0] * z + first;
    for (int64_t i = 1; i < n; ++i) c[i] += z * c[i - 1];
    c[n - 1] = about_edges ? c[n - 1] * z / (z - 1) : (z * c[n - 2] + c[n - 1]) * z / (z * z - 1);
    for (int64_t i = n - 2; i >= 0; --i) c[i] = z * (c[i + 1] - c[i]);
  }
}

at::Tensor spline_coefficients(const at::Tensor& image, int64_t order, bool about_edges) {
  const std::vector<double> poles = spline_poles(order);
  at::Tensor result = image;
  for (int64_t dim = 1; dim < image.dim() && !poles.empty(); ++dim) {
    const int64_t n = image.size(dim);
    if (n == 1) continue;
    at::Tensor lines = result.transpose(dim, -1).clone(at::MemoryFormat::Contiguous);
    auto* values = lines.mutable_data_ptr<double>();
    at::parallel_for(0, lines.numel() / n, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) filter_line(values + i * n, n, poles, about_edges);
    });
    result = lines.transpose(dim, -1);
  }
  return result.contiguous();
}

/// The voxels along one axis that contribute to a point, and their weights.
struct Taps {
  std::array<int64_t, kMostTaps> offset;
  std::array<double, kMostTaps> weight;
  bool is_outside = false;
};

struct Axis {
  int64_t n, stride;
};

Taps taps_at(double x, const Axis& axis, int64_t order, const std::string& padding_mode) {
  Taps taps;
  const auto end = static_cast<double>(axis.n - 1);
  if (padding_mode == "border") x = std::clamp(x, 0.0, end);
  if (padding_mode == "zeros") taps.is_outside = snapped(x) < 0 || snapped(x) > end;
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
  const bool about_edges = padding_mode == "reflection";
  const int64_t period = std::max<int64_t>(1, about_edges ? 2 * axis.n : 2 * axis.n - 2);
  for (int64_t k = 0; k <= order; ++k) {
    int64_t voxel = static_cast<int64_t>(knot) - order / 2 + k;
    if (padding_mode == "border") {
      voxel = std::clamp<int64_t>(voxel, 0, axis.n - 1);
    } else {
      voxel = (voxel % period + period) % period;
      if (voxel >= axis.n) voxel = period - (about_edges ? 1 : 0) - voxel;
    }
    taps.offset[static_cast<std::size_t>(k)] = voxel * axis.stride;
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

}  // namespace

at::Tensor sample_spline(const at::Tensor& image,
                         const at::Tensor& matrix,
                         const std::vector<int64_t>& size,
                         int64_t order,
                         const std::string& padding_mode,
                         bool align_corners) {
  const auto dims = static_cast<std::size_t>(image.dim() - 1);
  const int64_t border = padding_mode == "border" && order > 1 ? kBorder : 0;
  const at::Tensor wide =
      pad(image.to(at::kDouble), PadWidths(dims, {border, border}), "edge", /*value=*/0);
  const at::Tensor coefficients = spline_coefficients(wide, order, padding_mode != "zeros");
  const at::Tensor rows =
      (align_corners ? stretched(matrix, image.sizes().slice(1), size) : matrix).contiguous();
  const auto* row = rows.const_data_ptr<double>();
  // A plane is a volume of one plane, whose only tap is that plane.
  std::array<Axis, 3> axes{{{1, 0}, {1, 0}, {1, 0}}};
  std::array<int64_t, 3> shape{1, 1, 1};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t axis = 3 - dims + d;
    axes[axis] = {wide.size(static_cast<int64_t>(d) + 1),
                  coefficients.stride(static_cast<int64_t>(d) + 1)};
    shape[axis] = size[d];
  }
  std::vector<int64_t> out_size = size;
  out_size.insert(out_size.begin(), image.size(0));
  at::Tensor result = at::empty(out_size, at::kFloat);
  const int64_t voxels = shape[0] * shape[1] * shape[2];
  const auto* from = coefficients.const_data_ptr<double>();
  auto* to = result.mutable_data_ptr<float>();
  const auto one_point = [&](int64_t voxel) {
    const std::array<int64_t, 3> point{
        voxel / (shape[1] * shape[2]), voxel / shape[2] % shape[1], voxel % shape[2]};
    std::array<Taps, 3> taps;
    bool is_outside = false;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t lead = 3 - dims;
      if (d < lead) {
        taps[d].offset[0] = 0;
        taps[d].weight[0] = 1;
        continue;
      }
      double x = row[(d - lead) * (dims + 1) + dims] + static_cast<double>(border);
      for (std::size_t j = lead; j < 3; ++j)
        x += row[(d - lead) * (dims + 1) + j - lead] * static_cast<double>(point[j]);
      taps[d] = taps_at(x, axes[d], order, padding_mode);
      is_outside = is_outside || taps[d].is_outside;
    }
    const std::size_t count = static_cast<std::size_t>(order) + 1, planes = dims == 3 ? count : 1;
    for (int64_t c = 0; c < image.size(0); ++c) {
      const double* channel = from + c * coefficients.stride(0);
      double sum = 0;
      for (std::size_t z = 0; z < planes && !is_outside; ++z) {
        for (std::size_t y = 0; y < count; ++y) {
          double line = 0;
          const double* start = channel + taps[0].offset[z] + taps[1].offset[y];
          for (std::size_t x = 0; x < count; ++x)
            line += taps[2].weight[x] * start[taps[2].offset[x]];
          sum += taps[0].weight[z] * taps[1].weight[y] * line;
        }
      }
      to[c * voxels + voxel] = static_cast<float>(sum);
    }
  };
  at::parallel_for(0, voxels, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t voxel = begin; voxel < end; ++voxel) one_point(voxel);
  });
  return result;
}

}  // namespace cytra::data::spatial
