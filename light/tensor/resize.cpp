// Images at other places: each axis by itself where an image is resized, else by a grid of points.
#include <cmath>
#include <numeric>

#include "walk.h"

namespace at {
namespace {

/// The values, and their weights, of which a value of the result is made, along one axis.
struct Taps {
  std::vector<int64_t> places;
  std::vector<double> weights;
};
using AxisTaps = std::vector<Taps>;

/// Source: torch's area_pixel_compute_source_index(), in the precision of the image.
template <class T>
double source_of(int64_t i, int64_t in, int64_t out, bool align_corners, bool is_cubic) {
  if (align_corners)
    return out > 1 ? static_cast<double>(static_cast<T>(in - 1) / static_cast<T>(out - 1) *
                                         static_cast<T>(i))
                   : 0;
  const T scale = static_cast<T>(in) / static_cast<T>(out);
  const T place = scale * (static_cast<T>(i) + T(0.5)) - T(0.5);
  return is_cubic ? place : std::max(place, T(0));
}
double source_in(
    ScalarType type, int64_t i, int64_t in, int64_t out, bool align_corners, bool is_cubic) {
  return type == kDouble ? source_of<double>(i, in, out, align_corners, is_cubic)
                         : source_of<float>(i, in, out, align_corners, is_cubic);
}

AxisTaps taps_of(int64_t out, const auto& of) {
  AxisTaps taps;
  for (int64_t i = 0; i < out; ++i) taps.push_back(of(i));
  return taps;
}
AxisTaps linear_taps(ScalarType type, int64_t in, int64_t out, bool align_corners) {
  return taps_of(out, [&](int64_t i) {
    if (in == out) return Taps{{i}, {1}};
    const double source = source_in(type, i, in, out, align_corners, false);
    const int64_t low = std::min(static_cast<int64_t>(source), in - 1),
                  high = std::min(low + 1, in - 1);
    const double share = std::clamp(source - static_cast<double>(low), 0.0, 1.0);
    return Taps{{low, high}, {1 - share, share}};
  });
}
AxisTaps cubic_taps(ScalarType type, int64_t in, int64_t out, bool align_corners) {
  constexpr double kA = -0.75;
  const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return taps_of(out, [&](int64_t i) {
    const double source = source_in(type, i, in, out, align_corners, true);
    const auto low = static_cast<int64_t>(std::floor(source));
    const double t = source - static_cast<double>(low);
    Taps taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
    for (int64_t k = -1; k < 3; ++k) taps.places.push_back(std::clamp<int64_t>(low + k, 0, in - 1));
    return taps;
  });
}
AxisTaps nearest_taps(int64_t in, int64_t out, float offset) {
  return taps_of(out, [&](int64_t i) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    return Taps{
        {std::min(static_cast<int64_t>(std::floor((static_cast<float>(i) + offset) * scale)),
                  in - 1)},
        {1}};
  });
}
Taps mean_of(int64_t begin, int64_t end) {
  Taps taps{std::vector<int64_t>(static_cast<std::size_t>(end - begin)),
            std::vector<double>(static_cast<std::size_t>(end - begin),
                                1.0 / static_cast<double>(end - begin))};
  std::iota(taps.places.begin(), taps.places.end(), begin);
  return taps;
}
AxisTaps area_taps(int64_t in, int64_t out) {
  return taps_of(out,
                 [&](int64_t i) { return mean_of(i * in / out, ((i + 1) * in + out - 1) / out); });
}

/// Resizes the axis `d`.
Tensor along(const Tensor& x, int64_t d, const AxisTaps& taps) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<std::size_t>(d)] = static_cast<int64_t>(taps.size());
  const Tensor from = x.contiguous(), made = empty(shape, x.options());
  int64_t inner = 1;
  for (int64_t k = d + 1; k < x.dim(); ++k) inner *= x.size(k);
  const int64_t in = x.size(d), out = static_cast<int64_t>(taps.size());
  if (made.numel() == 0) return made;
  with_type(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, T, double>;
    const T* source = from.const_data_ptr<T>();
    T* to = made.mutable_data_ptr<T>();
    parallel_for(0,
                 made.numel() / inner,
                 std::max<int64_t>(1, 8192 / inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line) {
                     const Taps& own = taps[static_cast<std::size_t>(line % out)];
                     const T* block = source + line / out * in * inner;
                     for (int64_t i = 0; i < inner; ++i) {
                       Sum sum = 0;
                       for (std::size_t k = 0; k < own.places.size(); ++k)
                         sum += static_cast<Sum>(own.weights[k]) *
                                static_cast<Sum>(block[own.places[k] * inner + i]);
                       to[line * inner + i] =
                           static_cast<T>(own.places.size() == 1
                                              ? static_cast<Sum>(block[own.places[0] * inner + i])
                                              : sum);
                     }
                   }
                 });
  });
  return made;
}

/// Resizes the last axes, the last first.
Tensor resized(const Tensor& x, IntArrayRef size, const auto& of) {
  Tensor result = x;
  for (std::size_t i = size.size(); i-- > 0;) {
    const int64_t d = x.dim() - static_cast<int64_t>(size.size() - i);
    result = along(result, d, of(x.size(d), size[i]));
  }
  return result;
}

/// Brings a place into the image. Source: torch's grid_sampler_compute_source_index().
template <class T>
T within(T place, T size, int64_t padding, bool align_corners) {
  if (padding == 2) {
    const T low = align_corners ? T(0) : T(-0.5), span = align_corners ? size - 1 : size;
    if (span <= 0) return 0;
    const T off = std::fabs(place - low), rest = std::fmod(off, span);
    place = static_cast<int64_t>(std::floor(off / span)) % 2 == 0 ? rest + low : span - rest + low;
  }
  return padding == 0 ? place : std::clamp(place, T(0), size - 1);
}

}  // namespace

Tensor mean_resized(const Tensor& x, IntArrayRef size) {
  return resized(x, size, area_taps);
}
Tensor nearest_resized(const Tensor& x, IntArrayRef size, float offset) {
  return resized(x, size, [&](int64_t in, int64_t out) { return nearest_taps(in, out, offset); });
}
Tensor linear_resized(const Tensor& x, IntArrayRef size, bool align_corners) {
  return resized(x, size, [&](int64_t in, int64_t out) {
    return linear_taps(x.scalar_type(), in, out, align_corners);
  });
}
Tensor upsample_bicubic2d(const Tensor& x, IntArrayRef size, bool align_corners) {
  return resized(x, size, [&](int64_t in, int64_t out) {
    return cubic_taps(x.scalar_type(), in, out, align_corners);
  });
}

Tensor avg_pool2d(
    const Tensor& x, IntArrayRef kernel, IntArrayRef stride, int64_t padding, bool ceil_mode) {
  if (padding != 0) throw Error("avg_pool2d with a padding");
  Tensor result = x;
  for (int64_t d = x.dim() - 2; d < x.dim(); ++d) {
    const auto i = static_cast<std::size_t>(d - x.dim() + 2);
    const int64_t side = kernel[kernel.size() == 1 ? 0 : i],
                  step = stride[stride.size() == 1 ? 0 : i];
    const int64_t in = x.size(d);
    int64_t out = (in - side + (ceil_mode ? step - 1 : 0)) / step + 1;
    if (ceil_mode && (out - 1) * step >= in) --out;
    result = along(result, d, taps_of(out, [&](int64_t k) {
                     return mean_of(k * step, std::min(k * step + side, in));
                   }));
  }
  return result;
}

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  std::vector<int64_t> shape = size.slice(2).vec();
  const int64_t voxels = multiply_integers(shape);
  const Tensor points = empty({dims + 1, voxels}, theta.options());
  with_type(theta.scalar_type(), [&](auto type) {
    using T = decltype(type);
    T* to = points.mutable_data_ptr<T>();
    for (int64_t v = 0; v < voxels; ++v) {
      int64_t rest = v;
      for (int64_t d = 0; d < dims; ++d) {  // x first
        const int64_t n = shape[static_cast<std::size_t>(dims - 1 - d)], i = rest % n;
        rest /= n;
        const double place =
            n == 1 ? 0 : 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) - 1;
        to[d * voxels + v] = static_cast<T>(
            align_corners ? place : place * static_cast<double>(n - 1) / static_cast<double>(n));
      }
      to[dims * voxels + v] = 1;
    }
  });
  std::vector<Tensor> grids;
  shape.push_back(dims);
  for (int64_t n = 0; n < theta.size(0); ++n)
    grids.push_back(theta[n].matmul(points).t().contiguous().view(shape));
  return stack(grids);
}

Tensor grid_sampler(
    const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  if (mode != 0) throw Error("grid_sampler other than linear");
  const int64_t dims = x.dim() - 2, channels = x.size(1);
  const Tensor from = x.contiguous(), points = grid.contiguous();
  std::vector<int64_t> shape = grid.sizes().vec();
  shape.pop_back();
  shape.insert(shape.begin() + 1, channels);
  const Tensor made = empty(shape, x.options());
  const int64_t rows = x.size(0), out = rows == 0 ? 0 : points.numel() / dims / rows,
                in = multiply_integers(x.sizes().slice(2));
  with_type(x.scalar_type(), [&](auto type) {
    if constexpr (std::is_floating_point_v<decltype(type)>) {
      using T = decltype(type);
      const T *image = from.const_data_ptr<T>(), *point = points.const_data_ptr<T>();
      T* to = made.mutable_data_ptr<T>();
      parallel_for(0, rows * out, 1024, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) {
          const int64_t row = v / out;
          std::array<int64_t, 8> places{};
          std::array<T, 8> weights{};
          std::size_t corners = 1;
          weights[0] = 1;
          int64_t stride = 1;
          for (int64_t d = 0; d < dims; ++d) {
            const int64_t n = x.size(-1 - d);
            const T size = static_cast<T>(n), given = point[v * dims + d];
            const T place =
                within(align_corners ? (given + 1) / 2 * (size - 1) : ((given + 1) * size - 1) / 2,
                       size,
                       padding,
                       align_corners);
            const T floor = std::floor(place), share = place - floor;
            const auto low = std::isfinite(place) && std::fabs(place) < T(1e9)
                                 ? static_cast<int64_t>(floor)
                                 : -2;
            for (std::size_t k = 0; k < corners; ++k) {
              const auto take = [&](std::size_t to_corner, int64_t i, T weight) {
                const bool is_inside = i >= 0 && i < n && places[k] >= 0;
                weights[to_corner] = is_inside ? weights[k] * weight : 0;
                places[to_corner] = is_inside ? places[k] + i * stride : -1;
              };
              take(k + corners, low + 1, share);
              take(k, low, 1 - share);
            }
            corners *= 2;
            stride *= n;
          }
          for (int64_t c = 0; c < channels; ++c) {
            const T* plane = image + (row * channels + c) * in;
            T sum = 0;
            for (std::size_t k = 0; k < corners; ++k)
              if (places[k] >= 0) sum += weights[k] * plane[places[k]];
            to[(row * channels + c) * out + v % out] = sum;
          }
        }
      });
    } else {
      throw Error("grid_sampler of whole numbers");
    }
  });
  return made;
}

}  // namespace at
